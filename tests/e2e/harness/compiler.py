# SPDX-License-Identifier: Apache-2.0
"""A workload that compiles one kernel, with a compiler of a few lines of shell: for what is about
the pods, and not about the engine."""

from . import pods
from .kubectl import Kubectl
from .sleeper import Sleeper
from .steps import until_ready
from .waiting import wait_for
from .warmup import start_note

CACHE = {"name": "kernels", "env": "KERNELS_DIR", "path": "kernels"}
# Each rank of a LeaderWorkerSet or of an Indexed Job has a kernel of its own.
_COMPILE = """
kernel="$KERNELS_DIR/rank_${LWS_WORKER_INDEX:-${JOB_COMPLETION_INDEX:-0}}"
mkdir -p "$KERNELS_DIR"
if [ -f "$kernel" ]; then cat "$kernel" >/dev/null && echo hit
else sleep 5; echo "compiled $kernel" >"$kernel.new"; mv "$kernel.new" "$kernel"; echo miss; fi
"""
_SERVE = """
touch /tmp/ready
exec sleep 3600
"""
_READY = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}


def compiler(name: str, nodes: tuple[str, ...], **container) -> Sleeper:
    """`container` is merged over the container."""
    settings = {"readinessProbe": _READY, **container}
    script = _COMPILE + _SERVE
    return Sleeper(name=name, replicas=0, nodes=nodes, script=script, container=settings)


def trainer(name: str, nodes: tuple[str, ...]) -> Sleeper:
    """For pods of Jobs: it has compiled, and ends."""
    never = {"restartPolicy": "Never"}
    return Sleeper(name=name, replicas=0, nodes=nodes, script=_COMPILE, spec=never)


def assert_hit(kubectl: Kubectl, pod: dict) -> None:
    """It found its kernel, by its own words and by what the product saw."""
    until_ready(kubectl, pod)
    assert_counted_hit(kubectl, pod)


def assert_counted_hit(kubectl: Kubectl, pod: dict) -> None:
    """The same of a pod that has started, and may have ended."""
    name = pods.name(pod)
    log = wait_for(f"the log of {name}", lambda: kubectl.logs(name), 20, kubectl)
    assert log.split() == ["hit"], log
    seen = wait_for(f"{name} is counted", lambda: start_note(kubectl.get("pod", name)), 60, kubectl)
    assert seen["result"] == "hit", seen
