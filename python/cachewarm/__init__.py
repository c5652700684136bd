# SPDX-License-Identifier: Apache-2.0
"""Loads and saves compile caches by calls of the program "cachewarm".

    import cachewarm

    with cachewarm.synchronized("my-model/v1"):
        model = torch.compile(model)
        model(example)

No function raises for a store that fails: the caller compiles as without cachewarm. The reason of a
result is logged by the logger "cachewarm".
"""
import contextlib
import enum
import json
import logging
import os
import shutil
import subprocess
import sys

__all__ = ["OperationStatus", "load", "load_compile_cache", "save", "save_compile_cache",
           "synchronized", "synchronized_inductor_cache"]

_log = logging.getLogger("cachewarm")


class OperationStatus(enum.Enum):
    """Result of load() and save(), with the words of b10-transfer."""

    SUCCESS = enum.auto()
    ERROR = enum.auto()
    DOES_NOT_EXIST = enum.auto()  # the store has no bundle for this machine and these engines
    SKIPPED = enum.auto()  # there was nothing to transfer


def load(name=None, *, store=None, directory=None, options=()):
    """Loads the files of this machine's bundle that the cache directory lacks.

    Sets the environment variables of the compile caches to that directory, except those that are
    already set. Call before the first compilation.

    name: bundles in the store, such as "my-model/v1"; default CACHEWARM_NAME, else "run".
    store: directory or URL; default CACHEWARM_STORE, else B10FS_CACHE_DIR.
    directory: cache directory; default TORCHINDUCTOR_CACHE_DIR, else one below ~/.cache.
    options: more words for the program, such as ("--key", "/etc/keys/cachewarm.pub").
    """
    status, report = _call("load", name, store, directory, options)
    for variable, value in report.get("environment", {}).items():
        os.environ.setdefault(variable, value)
    return status


def save(name=None, *, store=None, directory=None, options=()):
    """Saves the cache directory, together with the files that the store already has.

    The arguments are those of load().
    """
    return _call("save", name, store, directory, options)[0]


@contextlib.contextmanager
def synchronized(name=None, *, store=None, directory=None, options=()):
    """Loads before the block, and saves after it, also if the block raises.

    The arguments are those of load().
    """
    load(name, store=store, directory=directory, options=options)
    try:
        yield
    finally:
        save(name, store=store, directory=directory, options=options)


# The names of the functions that these replace in b10-transfer and in fal's toolkit.
load_compile_cache = load
save_compile_cache = save
synchronized_inductor_cache = synchronized


def _call(verb, name, store, directory, options):
    """Runs one verb of the program. Returns the status and the report."""
    words = [verb, "--json", "--python", sys.executable or "python3"]
    for flag, value in (("--name", name or os.environ.get("CACHEWARM_NAME")), ("--store", store),
                        ("--dir", directory)):
        if value:
            words += [flag, os.fspath(value)]
    program = os.environ.get("CACHEWARM_BIN") or shutil.which("cachewarm")
    if not program:
        _log.error('%s: the program "cachewarm" is not in PATH; install it or set CACHEWARM_BIN',
                   verb)
        return OperationStatus.ERROR, {}
    try:
        done = subprocess.run([program, *words, *options], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
        report = json.loads(done.stdout)
        status = OperationStatus[report["status"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        output = done.stderr.strip() if isinstance(error, ValueError) else ""
        _log.error("%s: %s gave no result: %s", verb, program, output or error)
        return OperationStatus.ERROR, {}
    level = logging.ERROR if status is OperationStatus.ERROR else logging.INFO
    _log.log(level, "%s: %s: %s", verb, status.name, report.get("reason"))
    return status, report
