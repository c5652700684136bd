# SPDX-License-Identifier: Apache-2.0
"""The cache of built artifacts (tools/setup/cache.sh) and the packing of images. No cluster."""

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from harness.cluster import REPOSITORY

PACK = REPOSITORY / "images" / "make-oci-tar"
CACHE = REPOSITORY / "tools" / "setup" / "cache.sh"


def shell(cache: Path, script: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "CACHEWARM_CACHE": str(cache)}
    prelude = f"set -euo pipefail; . {CACHE}; "
    return subprocess.run(
        ["bash", "-c", prelude + script], env=environment, capture_output=True, text=True
    )


def test_artifact_is_built_once_per_key(tmp_path: Path):
    script = 'build() { echo "built $1"; date +%N >"$1/made"; }; cached thing KEY build'
    first = shell(tmp_path, script.replace("KEY", "k1"))
    again = shell(tmp_path, script.replace("KEY", "k1"))
    other = shell(tmp_path, script.replace("KEY", "k2"))
    assert first.stdout == again.stdout == f"{tmp_path}/thing/k1\n"
    assert "built" in first.stderr and again.stderr == "" and "built" in other.stderr
    assert (tmp_path / "thing/current").readlink() == Path("k2")


@pytest.mark.parametrize(
    "body", ["false; true", "exit 3", "echo $undefined_word", "kill -9 $BASHPID"]
)
def test_failed_build_is_discarded_and_retried(tmp_path: Path, body: str):
    failed = shell(tmp_path, f'build() {{ touch "$1/partial"; {body}; }}; cached thing k build')
    assert failed.returncode != 0 and "thing: failed" in failed.stderr
    assert not (tmp_path / "thing/current").exists()
    cured = shell(tmp_path, 'build() { touch "$1/whole"; }; cached thing k build')
    assert cured.returncode == 0
    assert sorted(p.name for p in (tmp_path / "thing/k").iterdir()) == [".complete", "whole"]


def test_concurrent_calls_build_one_artifact(tmp_path: Path):
    log = tmp_path / "log"
    build = f"build() {{ echo x >>{log}; sleep 0.5; }}"
    script = f"{build}; cached thing k build & cached thing k build; wait"
    assert shell(tmp_path, script).returncode == 0
    assert log.read_text() == "x\n"


def test_key_depends_on_contents_and_words(tmp_path: Path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    calls = ["a", "b", "a -- w", "a -- w v", "a b", "-- w"]
    keys = [shell(tmp_path, f"cd {tmp_path}; key_of {call}").stdout for call in calls]
    assert len(set(keys)) == len(calls)
    assert keys[0] == shell(tmp_path, f"cd {tmp_path}; key_of a").stdout


def pack(tmp_path: Path, out: str, *words: str) -> subprocess.CompletedProcess:
    command = [PACK, words[0], tmp_path / out, *words[1:]]
    return subprocess.run(command, capture_output=True, text=True)


def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/tool").write_text("#!/bin/sh\n")
    (root / "usr/bin/tool").chmod(0o751)
    (root / "bin").symlink_to("usr/bin")
    return root


def test_same_tree_gives_the_same_image_at_any_time(tmp_path: Path):
    root = tree(tmp_path)
    assert pack(tmp_path, "1.tar", "localhost/x:1", f"{root}=/", "=/tmp").returncode == 0
    os.utime(root / "usr/bin/tool", (1, 1))
    assert pack(tmp_path, "2.tar", "localhost/x:1", f"{root}=/", "=/tmp").returncode == 0
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()


def test_links_modes_and_user_arrive_in_the_image(tmp_path: Path):
    done = pack(
        tmp_path, "x.tar", "localhost/x:1", "--user", "65532:65532", f"{tree(tmp_path)}=/", "=/tmp"
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "x.tar") as image:

        def blob(digest: str):
            return image.extractfile("blobs/" + digest.replace(":", "/"))

        entry = json.load(image.extractfile("index.json"))["manifests"][0]
        manifest = json.load(blob(entry["digest"]))
        config = json.load(blob(manifest["config"]["digest"]))
        with tarfile.open(fileobj=blob(manifest["layers"][0]["digest"])) as layer:
            members = {member.name: member for member in layer}
    assert config["config"]["User"] == "65532:65532"
    assert entry["annotations"]["io.containerd.image.name"] == "localhost/x:1"
    assert members["bin"].issym() and members["bin"].linkname == "usr/bin"
    assert (members["usr/bin/tool"].mode, members["usr/bin/tool"].mtime) == (0o755, 0)
    assert members["tmp"].mode == 0o1777
    assert all(member.uid == member.gid == 0 for member in members.values())


@pytest.mark.parametrize(
    "words, message",
    [
        (("localhost/x", "=/tmp"), "expected NAME:TAG"),
        (("localhost/x:1", "nonsense"), "expected NAME=VALUE"),
        (("localhost/x:1", "/no/such/file=/x"), "no such file"),
    ],
)
def test_wrong_arguments_are_refused_and_leave_no_file(tmp_path: Path, words, message):
    done = pack(tmp_path, "x.tar", *words)
    assert done.returncode != 0 and message in done.stderr
    assert not (tmp_path / "x.tar").exists()
