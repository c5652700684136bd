# SPDX-License-Identifier: Apache-2.0
"""Certificates and kubeconfigs of the cluster, made with openssl (ECDSA). Idempotent."""

from pathlib import Path

from . import settings as names
from .process import run
from .settings import Settings

_SERVER_NAMES = ",".join(
    [
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        "DNS:kubernetes.default.svc.cluster.local",
        "DNS:localhost",
        f"DNS:{names.REGISTRY_NAME}",
        "IP:127.0.0.1",
        f"IP:{names.BRIDGE_ADDRESS}",
        f"IP:{names.SERVICE_ADDRESS}",
    ]
)
_DAYS = "365"


def make(settings: Settings) -> None:
    pki = settings.pki
    pki.mkdir(parents=True, exist_ok=True)
    _authority(pki)
    _certificate(pki, "apiserver", "/CN=kube-apiserver", "serverAuth", _SERVER_NAMES)
    _certificate(pki, "registry", "/CN=registry", "serverAuth", _SERVER_NAMES)
    _certificate(pki, "apiserver-kubelet", "/O=system:masters/CN=apiserver-kubelet-client")
    _service_account_key(pki)
    client(settings, "admin", "/O=system:masters/CN=admin")
    client(settings, "controller-manager", "/CN=system:kube-controller-manager")
    client(settings, "scheduler", "/CN=system:kube-scheduler")


def client(settings: Settings, name: str, subject: str) -> Path:
    """STATE/NAME.kubeconfig with a client certificate of this subject."""
    _certificate(settings.pki, name, subject)
    path = settings.state / f"{name}.kubeconfig"
    path.write_text(f"""apiVersion: v1
kind: Config
current-context: test
clusters: [{{name: test, cluster: {{server: "{names.API_SERVER}",
  certificate-authority: {settings.pki}/ca.crt}}}}]
contexts: [{{name: test, context: {{cluster: test, user: u}}}}]
users: [{{name: u, user: {{client-certificate: {settings.pki}/{name}.crt,
  client-key: {settings.pki}/{name}.key}}}}]
""")
    path.chmod(0o600)
    return path


def _key(path: Path) -> None:
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    path.chmod(0o600)


def _authority(pki: Path) -> None:
    if (pki / "ca.crt").exists():
        return
    _key(pki / "ca.key")
    run(
        *("openssl", "req", "-x509", "-new", "-key", pki / "ca.key", "-days", _DAYS),
        *("-subj", "/CN=cachewarm-test-ca", "-out", pki / "ca.crt"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
    )


def _certificate(pki: Path, name: str, subject: str, usage="clientAuth", alt_names="") -> None:
    certificate, request = pki / f"{name}.crt", pki / f"{name}.csr"
    if certificate.exists():
        return
    _key(pki / f"{name}.key")
    extensions = pki / f"{name}.ext"
    lines = ["keyUsage=critical,digitalSignature", f"extendedKeyUsage={usage}"]
    extensions.write_text(
        "\n".join(lines + ([f"subjectAltName={alt_names}"] if alt_names else []))
    )
    run("openssl", "req", "-new", "-key", pki / f"{name}.key", "-subj", subject, "-out", request)
    run(
        *("openssl", "x509", "-req", "-in", request, "-days", _DAYS, "-extfile", extensions),
        *("-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAserial", pki / f"{name}.srl"),
        *("-CAcreateserial", "-out", certificate),
    )


def _service_account_key(pki: Path) -> None:
    if not (pki / "sa.pub").exists():
        run("openssl", "genrsa", "-out", pki / "sa.key", "2048")
        run("openssl", "rsa", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub")
