# SPDX-License-Identifier: Apache-2.0
"""A group whose pods compile each for itself: the bundle has the files of all of them, and its pods
wait and start together."""

from datetime import datetime

from harness import pods
from harness.cluster import NODES
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released, wait_event, warmup_for

APP = "ranks"
TWINS = NODES[:2]  # of one GPU type and CPU class, so that all ranks have one key
# Each rank has a directory of its own, and what all of them write.
COMPILE = """
mkdir -p "$RANKS_DIR/rank_$RANK"
for file in "$RANKS_DIR/rank_$RANK/kernel" "$RANKS_DIR/shared"; do
  if [ -f "$file" ]; then cat "$file" >/dev/null && echo "hit $file"
  else echo "miss $file"; echo "compiled ${file##*/}" >"$file.new"; mv "$file.new" "$file"; fi
done
"""
SCRIPT = f"""{COMPILE}
touch /tmp/ready
exec sleep 3600
"""
CACHE = {"name": "ranks", "env": "RANKS_DIR", "path": "ranks"}


def sleeper(rank: int = 0, nodes: tuple[str, ...] = TWINS) -> Sleeper:
    ready = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    container = {"env": [{"name": "RANK", "value": str(rank)}], "readinessProbe": ready}
    return Sleeper(name=APP, replicas=0, nodes=nodes, script=SCRIPT, container=container)


def rank_pod(group: int, rank: int, node: str) -> dict:
    """As a LeaderWorkerSet makes it."""
    pod = sleeper(rank, (node,)).pod(f"{APP}-{group}-{rank}")
    pod["metadata"]["labels"].update(
        {
            "leaderworkerset.sigs.k8s.io/name": APP,
            "leaderworkerset.sigs.k8s.io/group-index": str(group),
            "leaderworkerset.sigs.k8s.io/worker-index": str(rank),
        }
    )
    return pod


def test_group_starts_warm_on_other_nodes_with_the_files_of_every_rank(
    kubectl: Kubectl, product: Product
):
    deployment = sleeper().deployment()
    compile_spec = {"builder": "FirstPod"}
    kubectl.apply(deployment, warmup_for(deployment, compile=compile_spec, caches=[CACHE]))
    warmup = Warmup(kubectl, APP)
    warmup.wait_injecting()
    warmup.wait_admission(rank_pod(9, 0, TWINS[0]))
    first = [rank_pod(0, rank, node) for rank, node in enumerate(TWINS)]
    kubectl.apply(*first)
    assert all(injected(pod) for pod in pods.wait_ready(kubectl, APP, 2, 120))

    (bundle,) = warmup.wait_bundles(1, 180)
    assert bundle["files"] == 3, "two kernels and what is shared"
    (builder,) = warmup.builders
    uids = {pod["metadata"]["uid"] for pod in pods.of(kubectl, APP)}
    assert builder["state"] == "Captured" and set(builder["ranks"]) == uids
    assert not builder.get("message") and "captured" not in builder
    assert "and its group of 2 pods" in wait_event(kubectl, APP, "Published")["note"]
    warmup.wait_warm()

    # Each rank of the next group is on a node on which another one compiled.
    kubectl.apply(*(rank_pod(1, rank, node) for rank, node in enumerate(reversed(TWINS))))
    pods.wait_ready(kubectl, APP, 4, 180)
    for rank in range(2):
        log = wait_for("its log", lambda r=rank: kubectl.logs(f"{APP}-1-{r}"), 20, kubectl)
        assert "miss" not in log and f"rank_{rank}/kernel" in log, log


LEADER = "localhost/cachewarm-workload:1"


def leader_pod(group: int, node: str) -> dict:
    """Rank 0 with an image of its own, whose programs are those of the machine."""
    pod = rank_pod(group, 0, node)
    (container,) = pod["spec"]["containers"]
    container["image"] = LEADER
    container["volumeMounts"] = [{"name": "usr", "mountPath": "/usr", "readOnly": True}]
    pod["spec"]["volumes"] = [{"name": "usr", "hostPath": {"path": "/usr"}}]
    return pod


def test_leader_of_another_image_gets_a_bundle_of_its_own(kubectl: Kubectl, product: Product):
    deployment = sleeper().deployment()
    compile_spec = {"builder": "FirstPod"}
    kubectl.apply(deployment, warmup_for(deployment, compile=compile_spec, caches=[CACHE]))
    warmup = Warmup(kubectl, APP)
    warmup.wait_injecting()
    warmup.wait_admission(rank_pod(9, 0, TWINS[0]))
    kubectl.apply(leader_pod(0, TWINS[0]), rank_pod(0, 1, TWINS[1]))
    pods.wait_ready(kubectl, APP, 2, 120)
    bundles = warmup.wait_bundles(2, 180)
    assert {bundle["image"] for bundle in bundles} == {LEADER, "localhost/busybox:1"}
    digests = {bundle["digest"] for bundle in bundles}

    def both_are_active() -> bool:
        return all(digests <= warmup.active_on(node) for node in TWINS)

    wait_for("both bundles are active on both nodes", both_are_active, 120, kubectl)
    kubectl.apply(leader_pod(1, TWINS[1]), rank_pod(1, 1, TWINS[0]))
    pods.wait_ready(kubectl, APP, 4, 180)
    for rank in range(2):
        log = wait_for("its log", lambda r=rank: kubectl.logs(f"{APP}-1-{r}"), 20, kubectl)
        assert "miss" not in log and f"rank_{rank}/kernel" in log, log
    assert {each["attempt"] for each in warmup.builders} == {1}, "nothing was built twice"


# Ranks of one run need each other: none ends before all have begun.
UNTIL_SIGNALLED = "until [ -f /tmp/all-run ]; do sleep 0.2; done"


def indexed_job() -> dict:
    """As a JobSet makes it, with a pod on each of the twins; it waits to be begun."""
    alike = {"matchLabels": {"app": APP}}
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": alike}
    script = f'RANK="$JOB_COMPLETION_INDEX"\n{COMPILE}{UNTIL_SIGNALLED}'
    template = Sleeper(name=APP, nodes=TWINS, script=script).template()
    template["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = APP
    template["spec"]["restartPolicy"] = "Never"
    template["spec"]["affinity"]["podAntiAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [apart]
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": APP},
        "spec": {
            "suspend": True,
            "completionMode": "Indexed",
            "completions": len(TWINS),
            "parallelism": len(TWINS),
            "template": template,
        },
    }


def test_bundle_has_the_files_of_all_completed_ranks(kubectl: Kubectl, product: Product):
    job = indexed_job()
    kubectl.apply(job, warmup_for(job, compile={"builder": "FirstPod"}, caches=[CACHE]))
    warmup = Warmup(kubectl, APP)
    warmup.wait_injecting()
    kubectl.patch("job", APP, {"spec": {"suspend": False}})

    def running() -> list[dict]:
        ranks = [pod for pod in pods.of(kubectl, APP) if pod["status"]["phase"] == "Running"]
        return ranks if len(ranks) == len(TWINS) else []

    for pod in wait_for("all ranks run", running, 60, kubectl):
        kubectl.execute(pods.name(pod), "touch", "/tmp/all-run")
    (bundle,) = warmup.wait_bundles(1, 180)
    assert all(injected(pod) for pod in pods.of(kubectl, APP))
    assert bundle["files"] == 3, "two kernels and what is shared"
    (builder,) = warmup.builders
    assert set(builder["ranks"]) == {pod["metadata"]["uid"] for pod in pods.of(kubectl, APP)}


def released_at(pod: dict) -> float:
    """By the operator's own words: the moment of the decision that released it."""
    created = datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp()
    return created + float(pods.annotation(pod, "cachewarm.io/held-seconds"))


def test_hold_mode_releases_all_ranks_by_one_decision(
    kubectl: Kubectl, product: Product
):
    deployment = sleeper().deployment()
    desired = warmup_for(
        deployment,
        compile={"builder": "FirstPod", "settleSeconds": 5},
        caches=[CACHE],
        gate={"mode": "Hold", "maxHoldSeconds": 300},
    )
    kubectl.apply(deployment, desired)
    warmup = Warmup(kubectl, APP)
    warmup.wait_injecting()
    warmup.wait_admission(rank_pod(9, 0, TWINS[0]))
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    kubectl.apply(*(rank_pod(0, rank, node) for rank, node in enumerate(TWINS)))
    first = pods.wait_ready(kubectl, APP, 2, 60)
    reasons = {released(pod) for pod in first}
    assert reasons == {"ReleasedForBuild", "ReleasedWithGroup"}, "released with its builder"

    kubectl.apply(*(rank_pod(1, rank, node) for rank, node in enumerate(reversed(TWINS))))
    names = [f"{APP}-1-{rank}" for rank in range(2)]
    assert all(gated(kubectl.get("pod", name)) for name in names)
    pods.wait_ready(kubectl, APP, 4, 120)
    second = [kubectl.get("pod", name) for name in names]
    reasons = {released(pod) for pod in second}
    assert "ReleasedWarm" in reasons and reasons <= {"ReleasedWarm", "ReleasedWithGroup"}
    assert released_at(second[0]) == released_at(second[1])
    for name in names:
        log = wait_for("its log", lambda n=name: kubectl.logs(n), 20, kubectl)
        assert "miss" not in log, log
