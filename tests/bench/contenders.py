# SPDX-License-Identifier: Apache-2.0
"""The contenders: a name, a description, and a function that measures one run.

Every contender of a group does the same work on the same tree. `cachewarm` is one of them in each
group.
"""
import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import agent_node
import corpora
from course import RUN_SECONDS
from processes import CommandFailed, Sample, measure, quiet, shell

LEVEL = "3"
# A tree of 10 GB is on the disk only after minutes. The sync holds the list of all files from its
# start.
DURABLE_SECONDS = 10


@dataclass(frozen=True)
class Contender:
    """`run` takes a Course whose target is empty, and returns a Sample."""
    group: str
    name: str
    what: str
    run: Callable[..., Sample]

    @property
    def title(self):
        """The name for --only and --list."""
        return f"{self.group}/{self.name}"


def bytes_below(folder):
    """Returns the sum of the files' sizes."""
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())


def packing(command):
    """A contender of pack: writes one archive, or a store, into the target."""
    def run(course):
        sample = shell(command.format(tree=course.corpus.tree, out=course.target,
                                      cachewarm=course.programs.cachewarm),
                       course.log, RUN_SECONDS)
        size = bytes_below(course.target)
        return dataclasses.replace(sample, size=size, synced=sample.wall + course.sync())
    return run


def unpacking(command, size_of):
    """A contender of unpack: writes the tree to TARGET/tree. `size_of`: the bytes it reads."""
    def run(course):
        words = dict(archives=course.corpus.archives, out=course.target / "tree",
                     programs=course.programs, bundle=course.bundle, gzip=course.digest,
                     zstd=course.digest_zst)
        sample = shell(command.format(**words), course.log, RUN_SECONDS)
        synced = sample.wall + course.sync()
        course.check_tree(course.target / "tree")
        return dataclasses.replace(sample, synced=synced, size=size_of(course))
    return run


def archive_size(name):
    """Returns a function for the bytes of one archive of the corpus."""
    return lambda course: (course.corpus.archives / name).stat().st_size


def bundle_size(course):
    """Returns the bytes of the bundle: layers and config."""
    return course.bundle_bytes


def activating(command, size_of):
    """A contender of activate: from the registry to the tree in TARGET/tree."""
    def run(course):
        sample = shell(command.format(out=course.target, remote=course.remote,
                                      programs=course.programs), course.log, RUN_SECONDS)
        synced = sample.wall + course.sync()
        course.check_tree(course.target / "tree")
        return dataclasses.replace(sample, synced=synced, size=size_of(course))
    return run


def pulling(kind, archive):
    """containerd does the work for ctr: its CPU and its memory count."""
    def run(course):
        containerd, image = course.containerd, f"{course.remote}:{kind}"
        containerd.reset_peak()
        before = containerd.cpu()
        try:
            sample = measure(containerd.pull_command(image), course.log, RUN_SECONDS)
            synced = sample.wall + course.sync()
            cpu = sample.cpu + containerd.cpu() - before
            check_snapshot(course)
        finally:
            containerd.forget(image)
        return dataclasses.replace(sample, cpu=cpu, synced=synced, rss_mb=containerd.peak(),
                                   size=archive_size(archive)(course))
    return run


def check_snapshot(course):
    """Raises unless the newest snapshot of containerd holds the tree."""
    found = list(course.disk.glob(
        "containerd/root/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs"))
    if not found:
        raise CommandFailed("ctr: nothing was unpacked")
    course.check_tree(max(found, key=lambda path: path.stat().st_ctime))


def limit(*words):
    """The limit as a contender: its wall time is that of the work and of the sync that ends it."""
    def run(course):
        places = dict(tree=course.corpus.tree, blob=course.layer(), out=course.target)
        sample = measure([str(course.programs.limit), *(w.format(**places) for w in words)],
                         course.log, RUN_SECONDS)
        parts = json.loads(course.log.read_text())
        return dataclasses.replace(sample, wall=parts["limit"], synced=parts["limit"], notes=parts)
    return run


def downloading(way):
    """A contender of download: reads the largest blob of the bundle and discards its bytes."""
    def run(course):
        layer = course.layer()
        host, _, repository = course.remote.partition("/")
        sample = measure([str(course.programs.download), way,
                          f"http://{host}/v2/{repository}/blobs/sha256:{layer.name}"],
                         course.log, RUN_SECONDS)
        if int(course.log.read_text()) != layer.stat().st_size:
            raise CommandFailed(f"{way}: {course.log.read_text().strip()} bytes of {layer}")
        return dataclasses.replace(sample, synced=sample.wall, size=layer.stat().st_size)
    return run


def fetching(tag, *older):
    """A contender of update: the agent's fetch. `older` tags are fetched before it."""
    def run(course):
        for each in older:
            measure(course.fetch_command(each), course.log, RUN_SECONDS)
        course.sync()
        sample = measure(course.fetch_command(tag, *older), course.log, RUN_SECONDS)
        result = json.loads(course.log.read_text())
        synced = sample.wall + course.sync()
        check_same(course.corpus.second, Path(result["tree"]))
        return dataclasses.replace(sample, synced=synced, size=result["movedBytes"], notes=result)
    return run


def until_active(where):
    """The agent's steps until its link leads to the tree; then all bytes are synced. `where`
    returns the store and the tag."""
    def run(course):
        store, tag = where(course)
        sample = measure(course.fetch_command(tag, options=["--activate"], store=store),
                         course.log, RUN_SECONDS)
        synced = sample.wall + course.sync()
        result = json.loads(course.log.read_text())
        course.check_tree(Path(result["tree"]))
        return dataclasses.replace(sample, synced=synced, size=result["movedBytes"], notes=result)
    return run


def remembering(*tags):
    """The agent's memory while it fetches these tags, one after the other, and starts to sync the
    last one."""
    def run(course):
        _, _, path = course.remote.partition("/")
        wanted = [course.versions[tag] for tag in tags]
        registry = f"oci://{course.registry.host}"
        with agent_node.running(course.programs, course.target, registry) as node:
            begin = time.monotonic()
            for digest, size in wanted:
                node.want(*path.split("/"), digest, size)
                node.await_active(digest, RUN_SECONDS)
            wall = time.monotonic() - begin
            node.await_durable(DURABLE_SECONDS)
            files, _, size = corpora.count(node.tree())
            sample = Sample(wall, node.agent.cpu(), node.agent.peak(), synced=wall,
                            size=sum(size for _, size in wanted))
        if (files, size) != corpora.count(course.corpus.second)[::2]:
            raise CommandFailed(f"agent: {files} files of {size} bytes")
        return sample
    return run


def check_same(expected, found):
    """Raises unless `found` holds the files of `expected` with their content, and no others."""
    files, _, size = corpora.count(found)
    if (files, size) != corpora.count(expected)[::2]:
        raise CommandFailed(f"{found}: {files} files of {size} bytes")
    for folder in expected.iterdir():
        quiet("diff", "-rq", folder, found / folder.name, timeout=RUN_SECONDS)


PACK = [
    Contender("pack", "cachewarm", "cachewarm pack TREE layout://...: zstd frames, sha256, fsync",
              packing("'{cachewarm}' pack '{tree}' 'layout://{out}/store/tree:bench'")),
    Contender("pack", "zip", "zip -q -r",
              packing("cd '{tree}' && zip -q -r '{out}/tree.zip' .")),
    Contender("pack", "tar_zstd", "tar | zstd -3 -T2",
              packing("tar -cf - -C '{tree}' . | zstd -q -3 -T2 -o '{out}/tree.tar.zst'")),
    Contender("pack", "limit", "read, zstd -3, sha256 and write on all cores; fsync",
              limit("pack", "{tree}", LEVEL, "{out}")),
]
UNPACK = [
    Contender("unpack", "agent", "the agent's steps from a directory: verified, active",
              until_active(lambda course: (course.store, "bundle"))),
    Contender("unpack", "cachewarm",
              "cachewarm unpack layout://...: verified, one syncfs, one rename",
              unpacking("'{programs.cachewarm}' unpack '{bundle}' '{out}' --quiet", bundle_size)),
    Contender("unpack", "unzip", "unzip -q (CRC32 only)",
              unpacking("unzip -q '{archives}/tree.zip' -d '{out}'", archive_size("tree.zip"))),
    Contender("unpack", "go_gzip", "Go archive/tar, compress/gzip, sha256 by a TeeReader",
              unpacking("'{programs.peers}/goextract' gzip '{archives}/tree.tar.gz' {gzip} '{out}'",
                        archive_size("tree.tar.gz"))),
    Contender("unpack", "go_zstd", "Go archive/tar, klauspost zstd, sha256 by a TeeReader",
              unpacking("'{programs.peers}/goextract' zstd '{archives}/tree.tar.zst' {zstd} "
                        "'{out}'", archive_size("tree.tar.zst"))),
    Contender("unpack", "sha_tar_zstd", "sha256sum && tar --zstd -x",
              unpacking("echo '{zstd}  {archives}/tree.tar.zst' | sha256sum -c --quiet && "
                        "mkdir '{out}' && tar --zstd -xf '{archives}/tree.tar.zst' -C '{out}'",
                        archive_size("tree.tar.zst"))),
    Contender("unpack", "limit", "sha256, zstd and create on all cores; syncfs",
              limit("unpack", "{blob}", "{tree}", "{out}")),
]
ACTIVATE = [
    Contender("activate", "agent", "the agent's steps from the registry: verified, active",
              until_active(lambda course: (None, "bundle"))),
    Contender("activate", "cachewarm",
              "cachewarm unpack oci://...: verified, one syncfs, one rename",
              activating("'{programs.cachewarm}' unpack 'oci://{remote}:bundle' '{out}/tree' "
                         "--quiet", bundle_size)),
    Contender("activate", "ctr_zstd", "ctr images pull, zstd layer, overlayfs",
              pulling("zstd", "tree.tar.zst")),
    Contender("activate", "ctr_gzip", "ctr images pull, gzip layer, overlayfs",
              pulling("gzip", "tree.tar.gz")),
    Contender("activate", "skopeo_untar", "skopeo copy to dir:, tar --zstd -x",
              activating("skopeo --insecure-policy copy -q --src-tls-verify=false "
                         "'docker://{remote}:zstd' 'dir:{out}/copy' && mkdir '{out}/tree' && "
                         "tar --zstd -xf \"$(ls -S '{out}'/copy/* | head -1)\" -C '{out}/tree'",
                         archive_size("tree.tar.zst"))),
    Contender("activate", "oras_untar", "oras pull, tar --zstd -x",
              activating("'{programs.peers}/oras' pull --plain-http '{remote}:oras' -o '{out}' "
                         "&& mkdir '{out}/tree' && tar --zstd -xf '{out}/tree.tar.zst' -C "
                         "'{out}/tree'", archive_size("tree.tar.zst"))),
]
UPDATE = [
    Contender("update", "cachewarm", "the agent's fetch of an update of the active bundle",
              fetching("second", "bundle")),
    Contender("update", "whole", "the agent's fetch of the same tree to an empty node",
              fetching("alone")),
]
AGENT = [
    Contender("agent", "memory", "the agent's program: fetch, update, start of the sync",
              remembering("bundle", "second")),
]
DOWNLOAD = [
    Contender("download", "cachewarm", "lib/http to a sink that counts", downloading("client")),
    Contender("download", "socket", "recv(2) into one buffer", downloading("socket")),
]
ALL = [*PACK, *UNPACK, *ACTIVATE, *UPDATE, *AGENT, *DOWNLOAD]
