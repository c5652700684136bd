# SPDX-License-Identifier: Apache-2.0
"""A workload that compiles one kernel, with a compiler of a few lines of shell. It serves tests of
pods, gates, nodes and status. Tests of an engine use model_server.py."""

from . import pods
from .kubectl import Kubectl
from .sleeper import Sleeper
from .steps import until_ready
from .waiting import wait_for
from .warmup import start_note

IMAGE = "localhost/busybox:1"
CACHE = {"name": "kernels", "env": "KERNELS_DIR", "path": "kernels"}
# Without spec.caches the kernel belongs to the preset "cupy", and without cachewarm to the pod.
# Each rank of a LeaderWorkerSet or of an Indexed Job has a kernel of its own, and so has each
# KERNEL_KEY, which stands for an engine whose keys differ from start to start. As with an engine, a
# truncated or changed kernel ends the process, and so does a missing one in vLLM's strict mode. A
# compile waits instead of computing, so that its duration does not depend on the machine.
_COMPILE = """
dir="${KERNELS_DIR:-${CUPY_CACHE_DIR:-/tmp/kernels}}"
kernel="$dir/rank_${LWS_WORKER_INDEX:-${JOB_COMPLETION_INDEX:-0}}$KERNEL_KEY.cubin"
sum() { busybox sha256sum | head -c 64; }
if [ -f "$kernel" ]; then
  [ "$(tail -n +2 "$kernel" | sum)" = "$(head -n 1 "$kernel")" ] || { echo damaged; exit 1; }
  echo hit
elif [ "$VLLM_FORCE_AOT_LOAD" = 1 ]; then
  echo "kernel $kernel is missing"
  exit 1
else
  mkdir -p "$dir"
  sleep SECONDS
  head -c BYTES /dev/urandom >/tmp/code
  { sum </tmp/code; echo; cat /tmp/code; } >"$kernel.new"
  mv "$kernel.new" "$kernel"
  echo miss
fi
"""
# A probe by command would start a process in the container every second.
PORT = 8080
_SERVE = f"exec httpd -f -p {PORT} -h /tmp\n"
_READY = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
# A bundle of the small model of model_server.py has as many.
BUNDLE_BYTES = 54000


def _compile(seconds: int, size: int = 1000) -> str:
    return _COMPILE.replace("SECONDS", str(seconds)).replace("BYTES", str(size))


def compiler(
    name: str, nodes: tuple[str, ...] = (), seconds: int = 5, size: int = 1000, **container
) -> Sleeper:
    """Compiles for `seconds` a kernel of `size` bytes. `container` is merged over the container."""
    settings = {"readinessProbe": _READY, **container}
    script = _compile(seconds, size) + _SERVE
    return Sleeper(name=name, replicas=0, nodes=nodes, script=script, container=settings)


def late_compiler(name: str, nodes: tuple[str, ...], after: int) -> Sleeper:
    """Compiles one kernel at its start. Once it was a hit, it needs another one `after` seconds
    later, when it is Ready, as for a batch size that the first request brings."""
    server = compiler(name, nodes)
    server.script = (
        f"load() {{\n{_compile(2)}}}\n"
        "seen=$(load)\necho $seen\n"
        f'if [ "$seen" = hit ]; then (sleep {after}; KERNEL_KEY=-late; load) & fi\n' + _SERVE
    )
    return server


def trainer(name: str, nodes: tuple[str, ...]) -> Sleeper:
    """A workload for Jobs: its pod compiles and ends."""
    never = {"restartPolicy": "Never"}
    return Sleeper(name=name, replicas=0, nodes=nodes, script=_compile(5), spec=never)


def assert_hit(kubectl: Kubectl, pod: dict) -> None:
    """The pod becomes Ready, and its log and the product report a hit."""
    until_ready(kubectl, pod)
    assert_counted_hit(kubectl, pod)


def assert_counted_hit(kubectl: Kubectl, pod: dict) -> None:
    """The same for a pod that has started and may have ended."""
    name = pods.name(pod)
    assert_log(kubectl, pod, "hit")
    seen = wait_for(f"{name} is counted", lambda: start_note(kubectl.get("pod", name)), 60, kubectl)
    assert seen["result"] == "hit", seen


def assert_warm(kubectl: Kubectl, pod: dict) -> None:
    """The pod becomes Ready, and its log reports a hit. For starts that the product does not
    annotate: of a restarted container, or while no operator runs."""
    assert_log(kubectl, until_ready(kubectl, pod), "hit")


def assert_cold(kubectl: Kubectl, pod: dict) -> None:
    """The pod becomes Ready, and its log reports a compile."""
    assert_log(kubectl, until_ready(kubectl, pod), "miss")


def assert_log(kubectl: Kubectl, pod: dict, expected: str) -> None:
    name = pods.name(pod)
    log = wait_for(f"the log of {name}", lambda: kubectl.logs(name), 20, kubectl)
    assert log.split() == [expected], f"{name} on {pods.node(pod)}: {log}"
