# SPDX-License-Identifier: Apache-2.0
"""Scratch file systems in files, mounted by loop devices with direct I/O.

A machine's root disk is a bad place to time extraction: some images have ext4 without a journal,
where creating a file after a deletion costs 200 us.
"""
import contextlib
import json
import shutil

from processes import CommandFailed, quiet

MAKE = {"ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        "xfs": ["mkfs.xfs", "-q", "-f"]}


@contextlib.contextmanager
def mounted(kind, folder, size):
    """Yields the mount point of a new file system of `size` bytes; both are gone afterwards."""
    image, target = folder / f"{kind}.img", folder / kind
    target.mkdir()
    with contextlib.ExitStack() as stack:
        with image.open("wb") as out:
            out.truncate(size)
        stack.callback(image.unlink)
        quiet(*MAKE[kind], image)
        loop = quiet("losetup", "--find", "--show", "--direct-io=on", image).strip()
        stack.callback(detach, loop)
        quiet("mount", "-o", "noatime", loop, target)
        stack.callback(unmount, target)
        yield target
    target.rmdir()


def unmount(target):
    """Unmounts the folder and all mounts below it, innermost first."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split()[1] for line in mounts]
    for point in sorted((p for p in points if p == str(target) or p.startswith(f"{target}/")),
                        reverse=True):
        try:
            quiet("umount", point)
        except CommandFailed:
            quiet("umount", "--lazy", point)


def detach(loop):
    """A device whose file system was unmounted lazily detaches itself later."""
    quiet("losetup", "--detach", loop)


def reclaim(folder):
    """Removes the leftovers of a killed bench from its work folder."""
    if not folder.exists():
        return
    unmount(folder)
    for device in json.loads(quiet("losetup", "--list", "--json") or "{}").get("loopdevices", []):
        if str(device["back-file"] or "").startswith(f"{folder}/"):
            detach(device["name"])
    shutil.rmtree(folder)
