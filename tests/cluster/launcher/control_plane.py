# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each a process of the
machine."""

import json
import subprocess
import urllib.error
import urllib.request
import ssl

from . import audit, network, pki
from . import settings as names
from .process import Daemon
from .progress import Progress, wait_until
from .settings import ClusterError, Settings

_ASK_SECONDS = 0.25  # each question is a TLS handshake on processors that are busy starting
_QPS = ("--kube-api-qps=400", "--kube-api-burst=800")


def daemon(settings: Settings, name: str) -> Daemon:
    return Daemon(settings.state, name)


def up(settings: Settings, progress: Progress) -> None:
    since = progress.now()
    if not daemon(settings, "apiserver").pid():
        for port in (names.API_PORT, names.ETCD_PORT, names.ETCD_PEER_PORT):
            if not (daemon(settings, "etcd").pid() and port != names.API_PORT):
                network.require_free(port)
    settings.state.mkdir(parents=True, exist_ok=True)
    pki.make(settings)
    network.make_bridge()
    _start_etcd(settings)
    start_apiserver(settings)
    progress.done("apiserver answers /readyz", since)
    _start_controllers(settings)
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_until(
        lambda: read(settings, account),
        60,
        lambda: f"no default ServiceAccount; {daemon(settings, 'controller-manager').tail()}",
        every=_ASK_SECONDS,
    )
    progress.done("control plane up", since)


def down(settings: Settings) -> None:
    for name in ("scheduler", "controller-manager"):
        daemon(settings, name).kill()
    stop_apiserver(settings)
    daemon(settings, "etcd").kill()


def restart_apiserver(settings: Settings, progress: Progress) -> None:
    since = progress.now()
    stop_apiserver(settings)
    start_apiserver(settings)
    progress.done("apiserver restarted", since)


def stop_apiserver(settings: Settings) -> None:
    """It would wait a minute for open watches; everything it has acknowledged is in etcd by
    then."""
    daemon(settings, "apiserver").kill(grace=1.0)


def kubectl(settings: Settings, *words: str, text_in: str | None = None):
    command = [str(settings.kubectl), f"--kubeconfig={settings.kubeconfig}", *words]
    done = subprocess.run(command, input=text_in, capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"kubectl {' '.join(words[:4])}: {done.stderr.strip()[-600:]}")
    return done.stdout


def kubectl_json(settings: Settings, *words: str):
    return json.loads(kubectl(settings, *words, "-o", "json"))


def start_apiserver(settings: Settings) -> None:
    keys = settings.pki
    api = daemon(settings, "apiserver")
    api.start(
        *(settings.kubebox, "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{names.ETCD_PORT}",
        *("--bind-address=0.0.0.0", f"--secure-port={names.API_PORT}"),
        f"--advertise-address={names.BRIDGE_ADDRESS}",
        f"--tls-cert-file={keys}/apiserver.crt",
        f"--tls-private-key-file={keys}/apiserver.key",
        f"--client-ca-file={keys}/ca.crt",
        *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"),
        *("--allow-privileged=true", "--anonymous-auth=true", "--profiling=false"),
        f"--service-cluster-ip-range={names.SERVICE_CIDR}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys}/sa.pub",
        f"--service-account-signing-key-file={keys}/sa.key",
        f"--kubelet-client-certificate={keys}/apiserver-kubelet.crt",
        f"--kubelet-client-key={keys}/apiserver-kubelet.key",
        "--kubelet-preferred-address-types=InternalIP",
        # Webhooks are called at the addresses of their pods: there is no kube-proxy.
        "--enable-aggregator-routing=true",
        *audit.flags(settings),
    )
    wait_until(
        lambda: _ready(settings),
        90,
        lambda: f"apiserver is not ready; {api.tail()}",
        every=_ASK_SECONDS,
    )


def _ready(settings: Settings) -> bool:
    daemon(settings, "etcd").require_alive()
    daemon(settings, "apiserver").require_alive()
    return read(settings, "/readyz", seconds=2) is not None


def read(settings: Settings, path: str, seconds: float = 30) -> bytes | None:
    """The API server's answer to a GET; None when it has none or refuses. Does not start kubectl,
    which costs a tenth of a second of a processor."""
    keys = settings.pki
    trust = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    trust.load_cert_chain(keys / "admin.crt", keys / "admin.key")
    try:
        with urllib.request.urlopen(
            f"{names.API_SERVER}{path}", timeout=seconds, context=trust
        ) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError):
        return None


def _start_etcd(settings: Settings) -> None:
    daemon(settings, "etcd").start(
        *(settings.kubebox, "etcd", f"--data-dir={settings.state}/etcd"),
        f"--client-url=http://127.0.0.1:{names.ETCD_PORT}",
        f"--peer-url=http://127.0.0.1:{names.ETCD_PEER_PORT}",
    )


def _identity(settings: Settings, name: str) -> list[str]:
    config = settings.state / f"{name}.kubeconfig"
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        *_QPS,
    ]


def _start_controllers(settings: Settings) -> None:
    keys = settings.pki
    daemon(settings, "controller-manager").start(
        *(settings.kubebox, "kube-controller-manager"),
        *_identity(settings, "controller-manager"),
        f"--service-account-private-key-file={keys}/sa.key",
        f"--root-ca-file={keys}/ca.crt",
        "--use-service-account-credentials=true",
        f"--cluster-signing-cert-file={keys}/ca.crt",
        f"--cluster-signing-key-file={keys}/ca.key",
        f"--service-cluster-ip-range={names.SERVICE_CIDR}",
        f"--node-monitor-grace-period={settings.node_grace_seconds}s",
    )
    daemon(settings, "scheduler").start(
        *(settings.kubebox, "kube-scheduler"), *_identity(settings, "scheduler")
    )
