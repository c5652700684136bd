# SPDX-License-Identifier: Apache-2.0
"""The trees for the contenders: two generated from a seed and kept, a real one of torch, and one of
10 GB.

A generated corpus and its archives lie in CACHE/corpus/<key>, where key is the hash of what they
are made from: tree, archives of it, and second, the tree after an upgrade that changed 5 %. It is
complete when .complete is there, which is written last.
"""
import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from corpus import tree
from corpus.copies import copy_many, edit_graphs
from corpus.material import Material
from corpus.mutation import mutate

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("CACHEWARM_CACHE", Path.home() / ".cache/cachewarm"))
SHAPES = {"small": tree.SMALL, "big": tree.BIG}
ARCHIVE_SECONDS = 600
COMPILE_SECONDS = 1200
TAR = "tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf -"
ARCHIVES = {
    "tree.zip": "cd '{tree}' && zip -q -r '{out}' .",
    "tree.tar.gz": TAR + " -C '{tree}' . | gzip -n >'{out}'",
    "tree.tar.zst": TAR + " -C '{tree}' . | zstd -q -3 -T2 -o '{out}'",
}


@dataclass(frozen=True)
class Corpus:
    """One tree, its size, and the archives of it that other tools unpack."""
    name: str
    tree: Path
    archives: Path | None  # None: no other tool unpacks it
    files: int
    folders: int
    bytes: int
    second: Path | None = None  # the tree after an upgrade

    @property
    def megabytes(self):
        """10^6 bytes of content."""
        return self.bytes / 1e6

    def has(self, group):
        """Returns True if the contenders of this group run on the corpus."""
        if not self.archives:
            return group == "agent"
        return self.second is not None or group not in ("agent", "update")


def count(root):
    """Returns (files, folders below root, bytes of files) of a tree."""
    files = folders = size = 0
    for path, names, leaves in os.walk(root):
        folders += len(names)
        files += len(leaves)
        size += sum(os.lstat(os.path.join(path, leaf)).st_size for leaf in leaves)
    return files, folders, size


def key_of(name):
    """Changes with the generator, its pinned packages, the Python and the shape."""
    digest = hashlib.sha256(repr((SHAPES[name], platform.python_version())).encode())
    for path in [*sorted((HERE / "corpus").glob("*.py")), HERE / "requirements.txt"]:
        digest.update(path.read_bytes())
    digest.update(repr(ARCHIVES).encode())
    return digest.hexdigest()[:16]


def archive(root, folder):
    """Writes every archive of the tree into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in ARCHIVES.items():
        subprocess.run(["bash", "-euo", "pipefail", "-c",
                        command.format(tree=root, out=folder / name)],
                       check=True, timeout=ARCHIVE_SECONDS)


def generated(name, say):
    """Returns the corpus called `name`, and generates it first if it is missing."""
    folder = CACHE / "corpus" / key_of(name)
    if not (folder / ".complete").exists():
        say(f"corpus {name}: generating it (once; kept in {folder})")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        material = Material()
        tree.build(folder / "tree", SHAPES[name], material)
        mutate(folder / "tree", folder / "second", SHAPES[name], material)
        say(f"corpus {name}: its archives")
        archive(folder / "tree", folder / "archives")
        (folder / ".complete").touch()
    files, folders, size = count(folder / "tree")
    return Corpus(name, folder / "tree", folder / "archives", files, folders, size,
                  folder / "second")


def torch_cache(say):
    """Returns the cache of a real torch.compile of the test workload, None without torch."""
    python, script = CACHE / "torch/current/bin/python", HERE.parent / "workload/model_server.py"
    if not python.exists():
        return None
    pins = script.with_name("requirements.txt")
    key = hashlib.sha256(script.read_bytes() + pins.read_bytes()).hexdigest()[:16]
    folder = CACHE / "corpus" / f"torch-{key}"
    if not (folder / ".complete").exists():
        say(f"corpus torch: compiling the test workload (once; kept in {folder})")
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tree").mkdir(parents=True)
        subprocess.run([str(python), str(script)], check=True, timeout=COMPILE_SECONDS,
                       stdout=subprocess.DEVNULL, env={
                           **os.environ, "MODEL_SIZE": "large", "MODEL_EXIT": "1",
                           "TORCHINDUCTOR_CACHE_DIR": str(folder / "tree/inductor")})
        (folder / ".complete").touch()
    return folder / "tree"


def real(source, scratch, cachewarm):
    """Copies the files of an engine's cache directory that can be captured: pods may still write
    into it."""
    folder = scratch / "real"
    bundle = f"layout://{folder}/store/torch:bench"
    folder.mkdir()
    for command in (["pack", str(source), bundle], ["unpack", bundle, str(folder / "tree")]):
        subprocess.run([str(cachewarm), *command], check=True, timeout=ARCHIVE_SECONDS,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    archive(folder / "tree", folder / "archives")
    files, folders, size = count(folder / "tree")
    return Corpus("torch", folder / "tree", folder / "archives", files, folders, size)


def huge(source, folder, copies, more_graphs):
    """Returns a corpus of different copies of `source`, and of as many more copies of its graph
    caches alone: below the number of files that a bundle may have. Its second version shares all
    but a few files with it by hard links."""
    copy_many(source.tree, folder / "tree", copies, more_graphs)
    shutil.copytree(folder / "tree", folder / "second", copy_function=os.link)
    edit_graphs(folder / "second")
    files, folders, size = count(folder / "tree")
    return Corpus("huge", folder / "tree", None, files, folders, size, folder / "second")
