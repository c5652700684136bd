# SPDX-License-Identifier: Apache-2.0
"""Other programs read the bundles that cachewarm writes, byte for byte."""
import hashlib
import json

from conftest import CRANE, ORAS, cachewarm, files_below, run


def unpack(layers, out):
    """Extracts layer files into a new directory with tar; returns the files below it."""
    out.mkdir()
    for layer in layers:
        run("tar", "--zstd", "-xf", layer, "-C", out)
    return files_below(out)


def layers_of(layout, digest):
    """Returns the layer files of a manifest in an image layout."""
    manifest = json.loads((layout / "blobs/sha256" / digest.removeprefix("sha256:")).read_text())
    return [layout / "blobs/sha256" / each["digest"].removeprefix("sha256:")
            for each in manifest["layers"]]


def test_skopeo_copies_bundle(bundle, tmp_path):
    run("skopeo", "--insecure-policy", "copy", "--src-tls-verify=false",
        f"docker://{bundle.image}", f"oci:{tmp_path}/copy:copied")
    assert unpack(layers_of(tmp_path / "copy", bundle.digest),
                  tmp_path / "out") == files_below(bundle.tree)


def test_skopeo_inspects_bundle(bundle):
    shown = json.loads(run("skopeo", "inspect", "--tls-verify=false",
                           f"docker://{bundle.image}").stdout)
    assert (shown["Digest"], shown["Architecture"], shown["Os"]) == (bundle.digest, "amd64",
                                                                     "linux")


def test_crane_validates_and_exports_bundle(bundle, tmp_path):
    # Without --fast crane treats every layer as gzip, regardless of its media type.
    run(CRANE, "validate", "--fast", "--insecure", "--remote", bundle.image)
    run(CRANE, "export", "--insecure", bundle.image, tmp_path / "export.tar")
    (tmp_path / "out").mkdir()
    run("tar", "-xf", tmp_path / "export.tar", "-C", tmp_path / "out")
    assert files_below(tmp_path / "out") == files_below(bundle.tree)


def test_crane_pulls_bundle(bundle, tmp_path):
    run(CRANE, "pull", "--insecure", "--format=oci", bundle.image, tmp_path / "layout")
    assert unpack(layers_of(tmp_path / "layout", bundle.digest),
                  tmp_path / "out") == files_below(bundle.tree)


def test_oras_fetches_manifest_and_blobs(bundle, tmp_path):
    manifest = run(ORAS, "manifest", "fetch", "--plain-http", bundle.image).stdout
    assert "sha256:" + hashlib.sha256(manifest).hexdigest() == bundle.digest
    layers = []
    for number, layer in enumerate(json.loads(manifest)["layers"]):
        layers.append(tmp_path / f"layer-{number}")
        run(ORAS, "blob", "fetch", "--plain-http", "--output", layers[-1],
            f"{bundle.host}/{bundle.name}@{layer['digest']}")
    assert unpack(layers, tmp_path / "out") == files_below(bundle.tree)


def test_oras_pulls_bundle(bundle, tmp_path):
    run(ORAS, "pull", "--plain-http", bundle.image, "-o", tmp_path)


def test_cachewarm_reads_layout_written_by_oras(bundle, tmp_path):
    run(ORAS, "cp", "--from-plain-http", bundle.image, "--to-oci-layout",
        f"{tmp_path}/copied:k-1")
    cachewarm("unpack", f"layout://{tmp_path}/copied:k-1", tmp_path / "out", "--quiet")
    assert files_below(tmp_path / "out") == files_below(bundle.tree)


def test_containerd_pulls_and_unpacks_bundle(bundle, containerd):
    run(*containerd.pull_command(bundle.image))
    snapshots = containerd.folder.glob(
        "root/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs")
    try:
        newest = max(snapshots, key=lambda path: path.stat().st_ctime)
        assert files_below(newest) == files_below(bundle.tree)
    finally:
        containerd.forget(bundle.image)
