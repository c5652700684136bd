# SPDX-License-Identifier: Apache-2.0
"""Starts that a careless observer would report as hits: each gets its right name and claims no time
that it did not save. The engine is a script that leaves the files of torch's Inductor."""

import pytest
from harness import metrics, pods
from harness.cluster import Cluster
from harness.compiler import PORT
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, replace, until_ready, warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup, start_note, wait_event

NODE, OTHER_NODE = "node-a", "node-b"
NEVER = {"mode": "Never"}
FACTS = "/etc/cachewarm-test"  # a directory of each node
COMPILE_SECONDS = 8
# Reads its behaviour from a file of the node, so that the pod template stays as it is. A warm start
# takes 2 s, because Kubernetes stores whole seconds, and a start of 0 s counts as not measured.
ENGINE = """
dir="$TORCHINDUCTOR_CACHE_DIR"
one="$dir/fxgraph/aa/faa/1"
two="$dir/fxgraph/bb/fbb/2"
object="$dir/cc/ccc.so"
take() { cat "$1" >/dev/null; }
compile() {
  mkdir -p "${1%/*}"
  echo "$(date) $(hostname)" >"${1%/*}/.1.2.tmp"
  mv "${1%/*}/.1.2.tmp" "$1"
}
link_object() { mkdir -p "$dir/cc"; rm -f "$object"; cp /bin/busybox "$object"; }
compile_all() { sleep SECONDS; link_object; compile "$one"; compile "$two"; }
behaviour() { cat FACTS/behaviour 2>/dev/null; }
case "$(behaviour)" in
  ignores) sleep 2 ;;
  useless) take "$one"; take "$two"; compile_all ;;
  half) take "$one"; compile "$two" ;;
  hollow) take "$one"; take "$two"; link_object ;;
  beside)
    : >"$dir/here.$(hostname)"
    while [ "$(ls "$dir" | grep -c here)" -lt 2 ]; do sleep 1; done
    if mkdir "$dir/taken" 2>/dev/null; then take "$one"; else compile "$two"; fi
    sleep 2 ;;
  late) take "$one"; take "$two"; sleep 2; (sleep 12; compile "$dir/fxgraph/dd/fdd/4") & ;;
  waits) while [ "$(behaviour)" = waits ]; do sleep 1; done; compile_all ;;
  *) if [ -f "$one" ]; then take "$one"; take "$two"; sleep 2; else compile_all; fi ;;
esac
echo done
exec httpd -f -p PORT -h /tmp
"""


def engine(name: str, *nodes: str) -> Sleeper:
    script = ENGINE.replace("SECONDS", str(COMPILE_SECONDS)).replace("FACTS", FACTS)
    container = {
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": "facts", "mountPath": FACTS, "readOnly": True}],
    }
    facts = {"name": "facts", "hostPath": {"path": FACTS, "type": "DirectoryOrCreate"}}
    return Sleeper(
        name=name,
        replicas=0,
        nodes=nodes,
        script=script.replace("PORT", str(PORT)),
        container=container,
        spec={"volumes": [facts]},
    )


@pytest.fixture
def behave(cluster: Cluster):
    """Sets how starts on one of the nodes behave; "" is a healthy engine."""
    path = f"{FACTS}/behaviour"

    def set_behaviour(name: str, node: str = NODE) -> None:
        cluster.write_in_node(node, path, name)

    yield set_behaviour
    for node in (NODE, OTHER_NODE):
        cluster.remove_in_node(node, path)


def note_of(kubectl: Kubectl, pod: dict) -> dict:
    name = pods.name(until_ready(kubectl, pod))
    return wait_for(
        f"{name} is counted", lambda: start_note(kubectl.get("pod", name)), 120, kubectl
    )


class TestOneNode:
    """The tests share the workload and its bundle, in their order."""

    @pytest.fixture
    def warmup(self, shared: Kubectl, product: Product) -> Warmup:
        return Warmup(shared, "claims")

    def test_next_start_of_a_healthy_engine_is_a_hit(self, shared: Kubectl, warmup: Warmup):
        warm_up(shared, engine("claims", NODE), gate=NEVER)
        note = note_of(shared, replace(shared, pods.of(shared, "claims")[0]))
        assert note["result"] == "hit" and note["savedSeconds"] > 0, note

    @pytest.mark.parametrize(
        "behaviour, result, reason",
        [
            ("ignores", "inert", "CacheMissed"),  # mounted, but not read
            ("useless", "partial", "StartedWarm"),  # read, and compiled again all the same
            ("half", "partial", "StartedWarm"),
            ("hollow", "hollow", "CacheMissed"),  # the native object is built again
        ],
    )
    def test_start_has_its_right_name(
        self, shared: Kubectl, warmup: Warmup, behave, behaviour: str, result: str, reason: str
    ):
        behave(behaviour)
        before = warmup.counts
        pod = replace(shared, pods.of(shared, "claims")[0])
        note = note_of(shared, pod)
        assert note["result"] == result, note
        event = wait_event(shared, pods.name(pod), reason)
        assert (event["type"] == "Warning") == (reason == "CacheMissed"), event
        warmup.wait_counted({**before, result: before.get(result, 0) + 1})
        if behaviour in ("ignores", "useless"):
            assert note["savedSeconds"] < COMPILE_SECONDS / 2, note

    def test_two_starts_in_one_tree_are_not_confused(
        self, shared: Kubectl, warmup: Warmup, behave
    ):
        """One reads and the other compiles while both start: nobody can say which."""
        behave("beside")
        shared.scale("deployment", "claims", 3)
        known = pods.wait_ready(shared, "claims", 3, 240)[1:]
        notes = [note_of(shared, pod) for pod in known]
        assert [note["result"] for note in notes] == ["unknown", "unknown"], notes
        assert all(note["savedSeconds"] <= 0 for note in notes), notes

    def test_compile_after_ready_is_counted_and_the_start_is_a_hit(
        self, shared: Kubectl, warmup: Warmup, product: Product, behave
    ):
        def late_compiles() -> float:
            mine = {"namespace": shared.namespace, "warmup": "claims"}
            samples = metrics.parse(product.metrics("operator"))
            counts = metrics.by_label(samples, "cachewarm_late_compiles_total", "warmup", **mine)
            return counts.get("claims", 0)

        behave("late")
        shared.scale("deployment", "claims", 1)
        wait_for("one pod is left", lambda: len(pods.of(shared, "claims")) == 1, 60, shared)
        note = note_of(shared, replace(shared, pods.of(shared, "claims")[0]))
        assert note["result"] == "hit", note
        assert late_compiles() == 0, "an entry of a start was counted as late"
        wait_for("the late compile is counted", lambda: late_compiles() == 1, 120, shared)
        of_types = warmup.status["starts"]["gpuTypes"]
        assert sum(each.get("lateCompiles", 0) for each in of_types) == 1, of_types


def test_bundle_that_arrives_during_a_start_is_neither_hit_nor_missed(
    kubectl: Kubectl, product: Product, cluster: Cluster, behave
):
    """The pod has mounted the tree of before and compiles there."""
    server = engine("arrives", NODE, OTHER_NODE)
    server.one_per_node = True
    warmup = accept(kubectl, server, gate=NEVER)
    cluster.verb("registry-throttle", "1000")  # so that the second node does not get it yet
    builder = until_ready(kubectl, add_pod(kubectl, server.name))
    (bundle,) = warmup.wait_bundles(1)
    (node,) = {NODE, OTHER_NODE} - {pods.node(builder)}
    behave("waits", node)
    pod = add_pod(kubectl, server.name)
    wait_for(f"{pods.name(pod)} runs", lambda: is_running(kubectl, pod), 60, kubectl)
    assert bundle["digest"] not in warmup.active_on(node)
    cluster.verb("registry-throttle", "unlimited")
    wait_for(
        f"{node} has the bundle", lambda: bundle["digest"] in warmup.active_on(node), 120, kubectl
    )
    assert not pods.ready(kubectl.get("pod", pods.name(pod)))
    behave("", node)
    note = note_of(kubectl, pod)
    assert note["result"] == "cold" and note["savedSeconds"] <= 0, note
    wait_event(kubectl, pods.name(pod), "StartedCold")
    later = note_of(kubectl, replace(kubectl, pod))
    assert later["result"] == "hit", later


def is_running(kubectl: Kubectl, pod: dict) -> bool:
    statuses = kubectl.get("pod", pods.name(pod))["status"].get("containerStatuses", [])
    return any("running" in status["state"] for status in statuses)
