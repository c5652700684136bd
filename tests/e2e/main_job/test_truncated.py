# SPDX-License-Identifier: Apache-2.0
"""Native code is written in place: a builder that dies while it writes, and a capture that races
with a writer, must never put half a file into a bundle."""

import os
import struct
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from harness import pods, registry
from harness.cluster import REGISTRY, Cluster
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.steps import accept, add_pod, assert_hit, until_ready
from harness.waiting import DEADLINE_FACTOR, wait_for
from harness.warmup import DIRECTORY, Warmup

NODES = ("node-a",)


def is_whole(content: bytes) -> bool:
    """An ELF file that holds its section table; what a cut one lacks first."""
    if content[:5] != b"\x7fELF\x02" or len(content) < 64:
        return False
    (sections_at,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    return 0 < sections_at and sections_at + size * count <= len(content)


def published_entries(warmup: Warmup, bundle: dict, into: Path) -> dict[str, bytes]:
    """Every file of a published bundle, read back from the registry without cachewarm's code."""
    base, repository = f"http://{REGISTRY}", f"cachewarm/{warmup.kubectl.namespace}/{warmup.name}"
    manifest = registry.manifest(base, repository, bundle["digest"])
    entries: dict[str, bytes] = {}
    for number, layer in enumerate(manifest["layers"]):
        packed, plain = into / f"{number}.tar.zst", into / f"{number}.tar"
        packed.write_bytes(registry.blob(base, repository, layer["digest"]))
        subprocess.run(["zstd", "-dqf", packed, "-o", plain], check=True)
        with tarfile.open(plain) as archive:
            for member in archive:
                if member.isfile():
                    entries[member.name] = archive.extractfile(member).read()
    return entries


def native(entries: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in entries.items() if name.endswith(".so")}


def tree(cluster: Cluster, warmup: Warmup) -> Path:
    """Where the builder's files are on the disk of its node."""
    path = f"/var/lib/cachewarm/{warmup.kubectl.namespace}/{warmup.name}/{warmup.uid}/image"
    link = cluster.on_disk(NODES[0], path)
    return (link.parent / link.readlink()).resolve() / "inductor"


def elected(warmup: Warmup) -> str:
    """The name of the pod that compiles."""

    def named() -> list[str]:
        return [builder["podName"] for builder in warmup.builders if builder.get("podName")]

    return wait_for("a builder", named, 60, warmup.kubectl)[0]


def wait_for_a_shared_object(directory: Path, seconds: float) -> Path:
    """The first one that appears, as soon as it does: g++ has only begun to write it."""
    deadline = time.monotonic() + seconds * DEADLINE_FACTOR
    while time.monotonic() < deadline:
        for folder, _, files in os.walk(directory):  # does not mind folders that vanish meanwhile
            for name in files:
                if name.endswith(".main.so"):
                    return Path(folder) / name
        time.sleep(0.01)
    raise AssertionError(f"no shared object in {directory}")


@pytest.fixture
def server() -> ModelServer:
    return ModelServer(name="truncated", nodes=NODES)


def test_killed_builder_publishes_no_truncated_file(
    kubectl: Kubectl, product: Product, cluster: Cluster, server: ModelServer, tmp_path: Path
):
    warmup = accept(kubectl, server, gate={"mode": "Never"})
    kubectl.scale("deployment", server.name, 1)
    builder = elected(warmup)
    truncated = wait_for_a_shared_object(tree(cluster, warmup), 180)
    cluster.kill_in_pod(kubectl.get("pod", builder))
    # Cut the file in half, as a slower disk would leave it.
    with open(truncated, "r+b") as file:
        file.truncate(max(4096, truncated.stat().st_size // 2))

    warmup.wait_bundles(1, 400)
    entries = published_entries(warmup, warmup.bundles[0], tmp_path)
    assert native(entries) and all(is_whole(content) for content in native(entries).values())
    # The container that was killed came back in its pod, and so did every pod after it.
    restarted = pods.wait_ready(kubectl, server.name, 1, 180)[0]
    # The kill, and one more where the new container came to the file before the agent (0004).
    assert pods.restarts(restarted) in (1, 2)
    assert pods.start(kubectl, restarted).right
    warmup.wait_warm()
    later = add_pod(kubectl, server.name)
    if any(path.endswith(truncated.name) for path in entries):
        assert_hit(kubectl, later)
    else:  # the half was enough for the new container, and the agent took it away after that
        assert pods.start(kubectl, until_ready(kubectl, later)).right


# Rewrites until it is signalled to stop, and leaves a whole file.
REWRITE = """
import os, sys, time
source, path = sys.argv[1:]
whole = open(source, "rb").read()
while not os.path.exists("/tmp/stop"):
    with open(path, "wb", buffering=0) as file:
        file.write(whole[: len(whole) // 2])
        time.sleep(0.3)
        file.write(whole[len(whole) // 2 :])
    time.sleep(1.2)
"""


def test_capture_beside_a_writer_publishes_no_truncated_file(
    kubectl: Kubectl, product: Product, cluster: Cluster, server: ModelServer, tmp_path: Path
):
    warmup = accept(kubectl, server, gate={"mode": "Never"}, compile={"settleSeconds": 1})
    kubectl.scale("deployment", server.name, 1)
    builder = elected(warmup)
    source = wait_for_a_shared_object(tree(cluster, warmup), 180)
    wait_for("it is written", lambda: is_whole(source.read_bytes()), 30, kubectl)
    inside = f"{DIRECTORY}/inductor/{source.relative_to(tree(cluster, warmup))}"
    target = inside.replace(".main.so", "race.main.so")
    python = kubectl.get("pod", builder)["spec"]["containers"][0]["command"][0]
    writer = kubectl.start("exec", builder, "--", python, "-c", REWRITE, inside, target)
    try:
        pods.wait_ready(kubectl, server.name, 1, 240)
        uid = kubectl.get("pod", builder)["metadata"]["uid"]

        def looked_at() -> bool:
            captures = kubectl.get("nodecache", NODES[0])["status"].get("captures", [])
            return bool(warmup.bundles) or any(uid in capture["id"] for capture in captures)

        wait_for("the agent looks at the builder", looked_at, 60, kubectl)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and not warmup.bundles:
            time.sleep(0.5)
        assert writer.poll() is None, "the writer died"
    finally:
        kubectl.execute(builder, "touch", "/tmp/stop")
        writer.wait(timeout=30)
    (bundle,) = warmup.wait_bundles(1, 240)
    entries = published_entries(warmup, bundle, tmp_path)
    assert native(entries) and all(is_whole(content) for content in native(entries).values())
    assert_hit(kubectl, add_pod(kubectl, server.name))
