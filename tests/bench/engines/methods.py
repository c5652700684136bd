# SPDX-License-Identifier: Apache-2.0
"""How each method carries a compile cache to a machine that has never compiled. One object per
round and model runs them in the order in which they need each other."""

import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from machines import Machine, Volume
from redis_server import RedisServer
from results import Sample

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHEWARM = ROOT / "build/release/cli/cachewarm"
WORKLOAD = ROOT / "tests/workload"


@dataclass(frozen=True)
class Tools:
    """Where tools/setup/bench-engines installed its programs."""

    peers: Path
    redis: Path


@dataclass(frozen=True)
class Engine:
    """An engine, its program, and where its cache is when no method decides that."""

    python: Path
    program: str
    arguments: tuple[str, ...]
    variable: str
    directory: str  # below /tmp
    methods: tuple[str, ...]

    @property
    def environment(self):
        return {self.variable: f"/tmp/{self.directory}"}

    def command(self, *words):
        return [str(self.python), str(HERE / "programs" / self.program), *self.arguments, *words]


ANY = ("cold", "warm", "copy", "cachewarm run")


def engines(torch, others):
    """Returns the engine of each model; arguments are the two environments of the set-up."""
    every = ("cold", "warm", "copy", "mega", "redis", "fal", "b10", "cachewarm run",
             "cachewarm import")
    found = {name: Engine(torch / "bin/python", "torch_program.py", (name,),
                          "TORCHINDUCTOR_CACHE_DIR", "inductor-cache", every)
             for name in ("transformer", "resnet152", "decoder")}
    found["vllm"] = Engine(others / "bin/python", "vllm_program.py", (str(WORKLOAD),),
                           "VLLM_CACHE_ROOT", "vllm", ANY)
    found["jax"] = Engine(others / "bin/python", "jax_program.py", (str(WORKLOAD),),
                          "JAX_COMPILATION_CACHE_DIR", "jax", ANY)
    return found


# b10-transfer wants 100 GB free on the volume by default.
B10 = {"BASETEN_FS_ENABLED": "1", "MIN_B10FS_SPACE_MB": "1000", "MAX_CACHE_SIZE_MB": "100",
       "MAX_CONCURRENT_SAVES": "10"}


# The setting is part of torch's keys; cachewarm sets it.
IMPORTABLE = {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}


def redis_environment(url):
    """torch's variables. The bundled autotune cache stays off: on CPU it ends the compilation."""
    return {"TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1",
            "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "1", "TORCHINDUCTOR_REDIS_URL": url}


def tree_bytes(directory):
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())


def sample(run, **fields):
    """A sample of one run, with what the method measured outside it."""
    result = run.result
    known = {name: result[name] for name in ("first_call_seconds", "native_rebuilt", "hits",
                                             "misses")}
    return Sample(**known, first_call_cpu_seconds=run.cpu, **fields)


class ModelRound:
    """All methods for one model in one round. `samples` are those that were measured, by method;
    `cold_of_cachewarm` is the run that filled the store of cachewarm. `place` is a directory for
    machines and volumes; `say` is called with (method, sample) when one is measured."""

    def __init__(self, engine, wanted, place, tools, say):
        self._engine, self._wanted, self._place, self._say = engine, wanted, place, say
        self._peers, self._redis = {"PYTHONPATH": str(tools.peers)}, tools.redis
        self.samples, self.cold_of_cachewarm = {}, None

    def run(self):
        volume = Volume(self._place)
        with self._machine(volume) as first:
            save = [name for name in ("mega", "fal", "b10") if name in self._wanted]
            cold = self._cold(first, save)
            self._warm(first)
            self._copy(first, volume)
            self._carriers(cold, volume, save)
        if "redis" in self._wanted:
            self._redis_start()
        if "cachewarm run" in self._wanted:
            self._cachewarm(cold)
        if "cachewarm import" in self._wanted:
            self._cachewarm_import(cold)
        shutil.rmtree(volume.path)

    @contextmanager
    def _machine(self, volume):
        machine = Machine(self._place, volume)
        try:
            yield machine
        finally:
            machine.remove()

    def _keep(self, method, run, **fields):
        self.samples[method] = sample(run, **fields)
        self._say(method, self.samples[method])

    def _cold(self, machine, save):
        environment = {**self._engine.environment, **self._peers, **(B10 if "b10" in save else {})}
        words = ["save", *save] if save else []
        run = machine.run(self._engine.command(*words), environment)
        self._keep("cold", run)
        return run

    def _warm(self, machine):
        run = machine.run(self._engine.command(), self._engine.environment)
        self._keep("warm", run)

    def _copy(self, source, volume):
        """cp of the directory to the volume, and from there to a new machine."""
        if "copy" not in self._wanted:
            return
        archive = volume.path / "data/copy"
        began = time.monotonic()
        copy_tree(source.tmp / self._engine.directory, archive)
        saved = time.monotonic()
        with self._machine(volume) as machine:
            before = time.monotonic()
            copy_tree(archive, machine.tmp / self._engine.directory)
            restored = time.monotonic() - before
            run = machine.run(self._engine.command(), self._engine.environment)
        self._keep("copy", run, save_seconds=saved - began, restore_seconds=restored,
                   bytes=tree_bytes(archive))

    def _carriers(self, cold, volume, names):
        archives = {"mega": "data/mega.bin", "fal": "data/inductor-caches",
                    "b10": "cache/model/compile_cache"}
        for name in names:
            with self._machine(volume) as machine:
                environment = {**self._engine.environment, **self._peers}
                environment |= B10 if name == "b10" else {}
                run = machine.run(self._engine.command("load", name), environment)
            self._keep(name, run, save_seconds=cold.result["save_seconds"][name],
                       restore_seconds=run.result["restore_seconds"],
                       bytes=volume.bytes_of(archives[name]))

    def _redis_start(self):
        volume = Volume(self._place)
        with RedisServer(self._redis, self._place) as server:
            environment = {**self._engine.environment, **self._peers,
                           **redis_environment(server.url)}
            with self._machine(volume) as machine:
                machine.run(self._engine.command(), environment)
            with self._machine(volume) as machine:
                run = machine.run(self._engine.command(), environment)
            self._keep("redis", run, bytes=server.value_bytes())

    def _cachewarm(self, cold):
        """The program compiles under `cachewarm run`, which publishes at its end. Delays of the
        command are differences to the cold start without cachewarm."""
        volume = Volume(self._place)
        with self._machine(volume) as machine:
            filled = machine.run(self._under_cachewarm(), {})
        self.cold_of_cachewarm = filled
        with self._machine(volume) as machine:
            run = machine.run(self._under_cachewarm(), {})
        self._keep("cachewarm run", run, save_seconds=max(filled.after - cold.after, 0.0),
                   restore_seconds=max(run.before - cold.before, 0.0),
                   bytes=volume.bytes_of("data/store"))

    def _cachewarm_import(self, cold):
        """A program with the environment of cachewarm saves a mega-cache, which is imported with
        its Inductor directory; another machine starts with the bundle."""
        volume = Volume(self._place)
        with self._machine(volume) as machine:
            saved = machine.run(self._engine.command("save", "mega"),
                                {**self._engine.environment, **IMPORTABLE})
            began = time.monotonic()
            subprocess.run([str(CACHEWARM), "import", str(volume.path / "data/mega.bin"),
                            "--with", str(machine.tmp / self._engine.directory),
                            "--dir", str(machine.path / "imported"),
                            "--store", str(volume.path / "data/store"), "--name", "bench",
                            "--python", str(self._engine.python), "--json"],
                           env={"PATH": os.environ["PATH"], "HOME": str(machine.path)}, check=True,
                           stdout=subprocess.DEVNULL)
            imported = time.monotonic() - began
        with self._machine(volume) as machine:
            run = machine.run(self._under_cachewarm(), {})
        self._keep("cachewarm import", run,
                   save_seconds=saved.result["save_seconds"]["mega"] + imported,
                   restore_seconds=max(run.before - cold.before, 0.0),
                   bytes=volume.bytes_of("data/store"))

    def _under_cachewarm(self):
        return [str(CACHEWARM), "run", "--store", "/data/store", "--name", "bench",
                "--ready-after-quiet", "0", "--", *self._engine.command()]


def copy_tree(source, target):
    """As cp -r does, through one process, into a directory that may exist."""
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-r", f"{source}/.", str(target)], check=True)
