# SPDX-License-Identifier: Apache-2.0
"""Signatures, with the real cosign: what we write it accepts, and the other way round."""
import json

import pytest

from conftest import COSIGN, ORAS, cachewarm, pack, run

OFFLINE = ["--tlog-upload=false", "--use-signing-config=false", "--allow-http-registry", "-y"]
NO_SIGNATURE = 10  # exit status of cosign verify


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Ours of openssl, cosign's own, and a stranger's."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "stranger"):
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", folder / f"{name}.key")
        run("openssl", "pkey", "-in", folder / f"{name}.key", "-pubout", "-out",
            folder / f"{name}.pub")
    run(COSIGN, "generate-key-pair", cwd=folder)
    return folder


def cosign_verify(bundle, key, code=0):
    """Without the internet."""
    return run(COSIGN, "verify", "--key", key, "--insecure-ignore-tlog", "--allow-http-registry",
               bundle.image, code=code)


def fresh(request, registry, tmp_path):
    """A bundle that nobody signed yet."""
    return pack(tmp_path, registry, "team/signed", request.node.nodeid)


def test_cosign_accepts_what_we_signed(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    cosign_verify(bundle, keys / "ours.pub", code=NO_SIGNATURE)
    cachewarm("sign", bundle.url, "--key", keys / "ours.key")
    told = json.loads(cosign_verify(bundle, keys / "ours.pub").stdout)
    assert told[0]["critical"]["image"]["docker-manifest-digest"] == bundle.digest
    cosign_verify(bundle, keys / "stranger.pub", code=1)
    found = json.loads(run(ORAS, "discover", "--plain-http", "--format=json",
                           bundle.image).stdout)
    assert len(found["manifests"]) == 1


def test_we_accept_what_cosign_signed(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    run(COSIGN, "sign", "--key", keys / "cosign.key", *OFFLINE, bundle.image)
    told = cachewarm("verify", bundle.url, "--key", keys / "cosign.pub").stdout.decode()
    assert "intact, signed" in told
    refused = cachewarm("verify", bundle.url, "--key", keys / "stranger.pub", code=3)
    assert "another key" in refused.stderr.decode()


def test_both_sign_the_same_bundle(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    run(COSIGN, "sign", "--key", keys / "cosign.key", *OFFLINE, bundle.image)
    cachewarm("sign", bundle.url, "--key", keys / "ours.key")
    run(COSIGN, "import-key-pair", "--key", keys / "stranger.key",
        "--output-key-prefix", tmp_path / "imported")
    run(COSIGN, "sign", "--key", tmp_path / "imported.key", *OFFLINE, bundle.image)
    for name in ("ours", "cosign", "stranger"):
        cosign_verify(bundle, keys / f"{name}.pub")
        cachewarm("verify", bundle.url, "--key", keys / f"{name}.pub")


def test_a_signature_is_of_one_bundle(request, registry, keys, tmp_path):
    signed = fresh(request, registry, tmp_path)
    other = pack(tmp_path, registry, "team/signed", "other")
    cachewarm("sign", signed.url, "--key", keys / "ours.key")
    cosign_verify(other, keys / "ours.pub", code=NO_SIGNATURE)
    cachewarm("verify", other.url, "--key", keys / "ours.pub", code=3)


def test_an_attestation_is_no_signature(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    (tmp_path / "predicate.json").write_text("{}")
    run(COSIGN, "attest", "--key", keys / "cosign.key", "--type", "https://example.com/x",
        "--predicate", tmp_path / "predicate.json", *OFFLINE, bundle.image)
    refused = cachewarm("verify", bundle.url, "--key", keys / "cosign.pub", code=3)
    assert "signed statement" in refused.stderr.decode()


def test_signatures_travel(request, registry, keys, tmp_path):
    bundle = fresh(request, registry, tmp_path)
    run(COSIGN, "sign", "--key", keys / "cosign.key", *OFFLINE, bundle.image)
    cachewarm("sign", bundle.url, "--key", keys / "ours.key")
    run(ORAS, "cp", "-r", "--from-plain-http", bundle.image, "--to-oci-layout",
        f"{tmp_path}/by-oras:k-1")
    cachewarm("pull", bundle.url, f"layout://{tmp_path}/by-us:k-1", "--key", keys / "ours.pub")
    cachewarm("push", f"layout://{tmp_path}/by-us:k-1", f"oci://{bundle.host}/team/back:k-1")
    for name in ("ours", "cosign"):
        for copy in (f"layout://{tmp_path}/by-oras:k-1", f"layout://{tmp_path}/by-us:k-1",
                     f"oci://{bundle.host}/team/back:k-1"):
            cachewarm("verify", copy, "--key", keys / f"{name}.pub")
        run(COSIGN, "verify", "--key", keys / f"{name}.pub", "--insecure-ignore-tlog",
            "--allow-http-registry", f"{bundle.host}/team/back@{bundle.digest}")


def test_a_private_key_of_cosign_is_refused_with_the_remedy(bundle, keys):
    refused = cachewarm("sign", bundle.url, "--key", keys / "cosign.key", code=1)
    assert "sign with cosign sign" in refused.stderr.decode()
