# SPDX-License-Identifier: Apache-2.0
"""Signatures of cachewarm are accepted by the real cosign, and vice versa."""
import json

import pytest

from conftest import COSIGN, ORAS, cachewarm, pack, run

OFFLINE = ["--tlog-upload=false", "--use-signing-config=false", "--allow-http-registry", "-y"]
NO_SIGNATURE = 10  # exit status of cosign verify


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Key pairs: `signer` and `other` by openssl, `cosign` by cosign."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("signer", "other"):
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", folder / f"{name}.key")
        run("openssl", "pkey", "-in", folder / f"{name}.key", "-pubout", "-out",
            folder / f"{name}.pub")
    run(COSIGN, "generate-key-pair", cwd=folder)
    return folder


def cosign_verify(bundle, key, code=0):
    """Runs cosign verify offline."""
    return run(COSIGN, "verify", "--key", key, "--insecure-ignore-tlog", "--allow-http-registry",
               bundle.image, code=code)


def fresh(request, registry, tmp_path):
    """Returns an unsigned bundle."""
    return pack(tmp_path, registry, "team/signed", request.node.nodeid)


def test_cosign_accepts_signature_of_cachewarm(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    cosign_verify(bundle, keys / "signer.pub", code=NO_SIGNATURE)
    cachewarm("sign", bundle.url, "--key", keys / "signer.key")
    output = json.loads(cosign_verify(bundle, keys / "signer.pub").stdout)
    assert output[0]["critical"]["image"]["docker-manifest-digest"] == bundle.digest
    cosign_verify(bundle, keys / "other.pub", code=1)
    found = json.loads(run(ORAS, "discover", "--plain-http", "--format=json",
                           bundle.image).stdout)
    assert len(found["manifests"]) == 1


def test_cachewarm_accepts_signature_of_cosign(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    run(COSIGN, "sign", "--key", keys / "cosign.key", *OFFLINE, bundle.image)
    output = cachewarm("verify", bundle.url, "--key", keys / "cosign.pub").stdout.decode()
    assert "intact, signed" in output
    refused = cachewarm("verify", bundle.url, "--key", keys / "other.pub", code=3)
    assert "another key" in refused.stderr.decode()


def test_both_sign_the_same_bundle(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    run(COSIGN, "sign", "--key", keys / "cosign.key", *OFFLINE, bundle.image)
    cachewarm("sign", bundle.url, "--key", keys / "signer.key")
    run(COSIGN, "import-key-pair", "--key", keys / "other.key",
        "--output-key-prefix", tmp_path / "imported")
    run(COSIGN, "sign", "--key", tmp_path / "imported.key", *OFFLINE, bundle.image)
    for name in ("signer", "cosign", "other"):
        cosign_verify(bundle, keys / f"{name}.pub")
        cachewarm("verify", bundle.url, "--key", keys / f"{name}.pub")


def test_signature_covers_one_bundle(request, registry, keys, tmp_path):
    signed = fresh(request, registry, tmp_path)
    other = pack(tmp_path, registry, "team/signed", "other")
    cachewarm("sign", signed.url, "--key", keys / "signer.key")
    cosign_verify(other, keys / "signer.pub", code=NO_SIGNATURE)
    cachewarm("verify", other.url, "--key", keys / "signer.pub", code=3)


def test_attestation_is_not_a_signature(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    (tmp_path / "predicate.json").write_text("{}")
    run(COSIGN, "attest", "--key", keys / "cosign.key", "--type", "https://example.com/x",
        "--predicate", tmp_path / "predicate.json", *OFFLINE, bundle.image)
    refused = cachewarm("verify", bundle.url, "--key", keys / "cosign.pub", code=3)
    assert "signed statement" in refused.stderr.decode()


def test_copies_keep_signatures(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    run(COSIGN, "sign", "--key", keys / "cosign.key", *OFFLINE, bundle.image)
    cachewarm("sign", bundle.url, "--key", keys / "signer.key")
    run(ORAS, "cp", "-r", "--from-plain-http", bundle.image, "--to-oci-layout",
        f"{tmp_path}/by-oras:k-1")
    cachewarm("pull", bundle.url, f"layout://{tmp_path}/by-cachewarm:k-1",
              "--key", keys / "signer.pub")
    cachewarm("push", f"layout://{tmp_path}/by-cachewarm:k-1", f"oci://{bundle.host}/team/back:k-1")
    for name in ("signer", "cosign"):
        for copy in (f"layout://{tmp_path}/by-oras:k-1", f"layout://{tmp_path}/by-cachewarm:k-1",
                     f"oci://{bundle.host}/team/back:k-1"):
            cachewarm("verify", copy, "--key", keys / f"{name}.pub")
        run(COSIGN, "verify", "--key", keys / f"{name}.pub", "--insecure-ignore-tlog",
            "--allow-http-registry", f"{bundle.host}/team/back@{bundle.digest}")


def test_encrypted_cosign_key_is_rejected_with_remedy(bundle, keys):
    refused = cachewarm("sign", bundle.url, "--key", keys / "cosign.key", code=1)
    assert "cosign sign instead" in refused.stderr.decode()
