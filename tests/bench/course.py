# SPDX-License-Identifier: Apache-2.0
"""One corpus on one scratch file system: where contenders read, and where they write."""
import contextlib
import copy
import dataclasses
import hashlib
import json
import mmap
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import corpora
from processes import CommandFailed, quiet

RUN_SECONDS = 600
# Of a tree: what a run may write, as often as any of the programs does.
FREE_TIMES = 3
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+"


@dataclass(frozen=True)
class Programs:
    """The programs of this repository and of others."""
    cachewarm: Path
    limit: Path
    download: Path
    fetch: Path
    openat2: Path  # preloaded under valgrind
    peers: Path  # goextract, oras
    agent: Path
    api_server: Path

    def copied(self, folder, names=("cachewarm", "limit", "download", "fetch", "openat2", "agent",
                                    "api_server")):
        """Returns copies in `folder` of the programs that a build could replace meanwhile."""
        folder.mkdir()
        return dataclasses.replace(self, **{
            name: Path(shutil.copy2(getattr(self, name), folder)) for name in names})


class Course:
    """Creates in `work`, once, the inputs of unpackers and pullers."""

    def __init__(self, corpus, disk, work, programs):
        self.corpus, self.disk, self.work, self.programs = corpus, disk, work, programs
        self.target = disk / f"{corpus.name}-target"
        self.log = work / "command.log"
        work.mkdir(parents=True)
        self.store = f"layout://{work}/store"
        self.bundle = f"{self.store}/bench/{corpus.name}:bundle"
        packed = self.cachewarm("pack", corpus.tree, self.bundle)
        self.bundle_bytes = packed["bytes"]
        self.versions = {"bundle": (packed["digest"], packed["bytes"])}
        # Computed before other bundles are in the same store.
        self.largest = max(self.work.glob("store/**/blobs/sha256/*"),
                           key=lambda path: path.stat().st_size)
        self.digest = self.digest_zst = None
        if corpus.archives:
            self.digest = file_digest(corpus.archives / "tree.tar.gz")
            self.digest_zst = file_digest(corpus.archives / "tree.tar.zst")
        self.registry = self.containerd = self.remote = None

    def on(self, disk, containerd=None):
        """Returns the same course on a different file system, with the containerd that is there."""
        other = copy.copy(self)
        other.disk, other.target, other.containerd = disk, disk / self.target.name, containerd
        return other

    def cachewarm(self, *words):
        """Runs cachewarm without measuring it. Raises unless it transfers the whole corpus."""
        report = json.loads(quiet(self.programs.cachewarm, *words, "--json",
                                  timeout=RUN_SECONDS))
        if report.get("files", self.corpus.files) != self.corpus.files:
            raise CommandFailed(f"cachewarm {words[0]}: {report['files']} files of "
                                f"{self.corpus.files}; left behind: {report.get('leftBehind')}")
        return report

    def layer(self):
        """The largest blob of the bundle."""
        return self.largest

    def connect(self, registry):
        """Puts the bundle into `registry`."""
        self.registry = registry
        self.remote = f"{registry.host}/bench/{self.corpus.name}"
        self.cachewarm("push", self.bundle, f"oci://{self.remote}:bundle")

    def publish_image(self, kind):
        """Puts an image of the corpus with this compression into the registry."""
        layout = self.work / f"image-{kind}"
        write_image(layout, self.corpus.archives, kind)
        quiet("skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false",
              f"oci:{layout}:bench", f"docker://{self.remote}:{kind}", timeout=RUN_SECONDS)

    def publish(self, registry):
        """Puts the bundle and, of a corpus with archives, an image of each compression and the oras
        artifact into `registry`."""
        self.connect(registry)
        self.publish_second()
        if not self.corpus.archives:
            return
        for kind in ("gzip", "zstd"):
            self.publish_image(kind)
        subprocess.run([str(self.programs.peers / "oras"), "push", "--plain-http",
                        f"{self.remote}:oras", f"tree.tar.zst:{LAYER}zstd"],
                       cwd=self.corpus.archives, check=True, timeout=RUN_SECONDS,
                       stdout=subprocess.DEVNULL)

    def publish_second(self):
        """Publishes the upgraded tree as an update of the first and, for the group `update`, as a
        full bundle."""
        versions = [("second", ["--base", self.bundle])] if self.corpus.second else []
        if self.corpus.has("update"):
            versions.append(("alone", []))
        for tag, base in versions:
            bundle = f"{self.bundle.rpartition(':')[0]}:{tag}"
            packed = json.loads(quiet(self.programs.cachewarm, "pack", self.corpus.second, bundle,
                                      *base, "--json", timeout=RUN_SECONDS))
            self.versions[tag] = (packed["digest"], packed["bytes"])
            quiet(self.programs.cachewarm, "push", bundle, f"oci://{self.remote}:{tag}",
                  timeout=RUN_SECONDS)

    def fetch_command(self, tag, *older, options=(), store=None):
        """The agent's fetch of that tag into a root below the target, from the registry or from
        `store`."""
        registry, _, path = self.remote.partition("/")
        namespace, _, name = path.partition("/")
        return [str(self.programs.fetch), *options, str(self.target / "root"),
                store or f"oci://{registry}", namespace, name, tag, *older]

    @contextlib.contextmanager
    def clean_target(self):
        """Creates an empty directory for one run, then removes it and waits for the disk."""
        self.target.mkdir()
        back_free_memory(FREE_TIMES * self.corpus.bytes)
        try:
            yield self.target
        finally:
            shutil.rmtree(self.target)
            quiet("sync", "-f", self.disk, timeout=RUN_SECONDS)

    def sync(self):
        """Syncs the disk. Returns the seconds it took."""
        begin = time.monotonic()
        quiet("sync", "-f", self.disk, timeout=RUN_SECONDS)
        return time.monotonic() - begin

    def check_tree(self, root):
        """Raises unless the tree has as many files and bytes as the corpus."""
        files, _, size = corpora.count(root)
        if (files, size) != (self.corpus.files, self.corpus.bytes):
            raise CommandFailed(f"{root}: {files} files of {size} bytes, not {self.corpus.files} "
                                f"of {self.corpus.bytes}")


def back_free_memory(size):
    """Writes `size` bytes of free memory once, at most half of the free memory. A virtual machine
    gets its free pages from the host at the first write, which takes as long as unpacking into
    them; no run should wait for that, after any other run."""
    pages = os.sysconf("SC_AVPHYS_PAGES") // 2
    mmap.mmap(-1, min(size, pages * mmap.PAGESIZE),
              flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def file_digest(path):
    """sha256 of a file, in hex."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def diff_id(archive, kind):
    """sha256 of the tar in an archive, in hex."""
    process = subprocess.Popen([kind, "-dc", str(archive)], stdout=subprocess.PIPE)
    with process.stdout:
        digest = hashlib.file_digest(process.stdout, "sha256").hexdigest()
    if process.wait(RUN_SECONDS):
        raise CommandFailed(f"{archive}: {kind} cannot read it")
    return digest


def write_image(layout, archives, kind):
    """Writes an OCI image layout whose only layer is an archive in a different folder."""
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    archive = archives / {"gzip": "tree.tar.gz", "zstd": "tree.tar.zst"}[kind]

    def add(value):
        content = json.dumps(value).encode()
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    layer = file_digest(archive)
    os.symlink(archive, blobs / layer)
    config = add({"architecture": "amd64", "os": "linux", "rootfs": {
        "type": "layers", "diff_ids": [f"sha256:{diff_id(archive, kind)}"]}})
    manifest = add({"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": {"mediaType": CONFIG, **config},
                    "layers": [{"mediaType": LAYER + kind, "digest": f"sha256:{layer}",
                                "size": archive.stat().st_size}]})
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": MANIFEST, **manifest,
         "annotations": {"org.opencontainers.image.ref.name": "bench"}}]}))
