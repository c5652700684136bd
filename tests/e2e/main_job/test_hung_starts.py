# SPDX-License-Identifier: Apache-2.0
"""An engine that hangs on a file of a bundle: the second hung start suspends the bundle, and later
pods start without it. A slow start that ends suspends nothing."""

import pytest
from harness import compiler, pods
from harness.compiler import CACHE
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import add_pod, replace, until_ready, warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup, injected, wait_event

NODES = ("node-a", "node-b")  # of one GPU type and CPU class
NEVER = {"mode": "Never"}
# A cold start takes about five seconds, so a start is hung after about fifteen.
HANG_SECONDS = 10
# The compile leaves the results of an autotune beside the kernel. With them, the engine waits as
# for ranks that never come.
START = """
if [ -f "$KERNELS_DIR/autotune.json" ]; then
  WARM
else
  sleep 4
  mkdir -p "$KERNELS_DIR"
  echo tuned >"$KERNELS_DIR/autotune.json"
  echo cold
fi
exec httpd -f -p PORT -h /tmp
"""


def engine(name: str, warm: str) -> Sleeper:
    """Runs the commands `warm` if it finds the results of an autotune."""
    server = compiler.compiler(name, NODES)
    server.script = START.replace("PORT", str(compiler.PORT)).replace("WARM", warm)
    return server


def accepted(kubectl: Kubectl, server: Sleeper) -> Warmup:
    return warm_up(kubectl, server, caches=[CACHE], gate=NEVER, hangSeconds=HANG_SECONDS)


@pytest.fixture
def warmup(kubectl: Kubectl, product: Product) -> Warmup:
    return accepted(kubectl, engine("hangs", "echo waits; exec sleep 3600"))


def test_second_hung_start_suspends_the_bundle_and_the_third_pod_starts_without_it(
    kubectl: Kubectl, warmup: Warmup
):
    (bundle,) = warmup.bundles
    hung = [add_pod(kubectl, "hangs"), add_pod(kubectl, "hangs")]
    degraded = warmup.wait_condition("Degraded", "True", "BundleSuspended", 120)
    for words in (bundle["digest"], "Delete the hung pods", *(pods.name(pod) for pod in hung)):
        assert words in degraded["message"], degraded
    assert [kubectl.logs(pods.name(pod)).split() for pod in hung] == [["waits"], ["waits"]]
    (suspended,) = warmup.status["suspendedBundles"]
    assert suspended["digest"] == bundle["digest"]
    assert {start["pod"] for start in suspended["hungStarts"]} == {pods.name(pod) for pod in hung}
    assert wait_event(kubectl, "hangs", "StartHung")["type"] == "Warning"
    assert not warmup.bundles
    for node in NODES:
        wait_for(f"{node} drops it", lambda node=node: not warmup.active_on(node), 60, kubectl)

    third = until_ready(kubectl, replace(kubectl, hung[0]))
    assert injected(third), "only the bundle is suspended, not the workload"
    assert kubectl.logs(pods.name(third)).split() == ["cold"]
    assert warmup.condition("Ready")["status"] == "True"


def test_slow_start_that_ends_suspends_nothing(kubectl: Kubectl, product: Product):
    # Ready after ten seconds with the bundle, later than a cold start and before the limit.
    warmup = accepted(kubectl, engine("slow", "sleep 10; echo warm"))
    for _ in range(2):
        pod = until_ready(kubectl, add_pod(kubectl, "slow"))
        assert kubectl.logs(pods.name(pod)).split() == ["warm"]
    assert len(warmup.bundles) == 1
    assert "hungStarts" not in warmup.bundles[0]
    assert "suspendedBundles" not in warmup.status
