# SPDX-License-Identifier: Apache-2.0
"""What the demo installs and runs, in the built-in cluster or in the caller's own."""

import os
import re
import sys
from pathlib import Path

from harness import model_server
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.product import Product

ROOT = Path(__file__).resolve().parents[2]

CURRENT = os.environ.get("CLUSTER") == "current"
# The third node of the built-in cluster plays a node with an accelerator: its facts are declared
# by a file, as --node-facts is for.
SECOND_TYPE = "nvidia/l4/sm_89"


def install() -> Kubectl:
    """Installs cachewarm; returns a kubectl for its cluster."""
    if CURRENT:
        return install_here()
    cluster = Cluster()
    product = Product(cluster)
    product.install()
    product.declare("node-c", {"gpuType": SECOND_TYPE, "deviceCount": 1})
    return cluster.kubectl()


def install_here() -> Kubectl:
    """manifests/install.yaml into the caller's cluster; images and bundles at REGISTRY."""
    registry = os.environ["REGISTRY"]
    kubectl = Kubectl("kubectl", os.environ.get("KUBECONFIG", str(Path.home() / ".kube/config")))
    text = (ROOT / "manifests/install.yaml").read_text()
    for program in ("operator", "agent"):
        text = re.sub(rf"image: \S+/{program}:\S+", f"image: {registry}/cachewarm-{program}:dev",
                      text)
    text = re.sub(r"^(    store: ).*$", rf"\1oci://{registry}/bundles", text, flags=re.M)
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", text_in=text)
    system = kubectl.within("cachewarm-system")
    system.run("rollout", "status", "deployment/cachewarm-operator", "--timeout=180s", seconds=200)
    system.run("rollout", "status", "daemonset/cachewarm-agent", "--timeout=180s", seconds=200)
    return kubectl


def deployment(name: str, replicas: int) -> dict:
    server = model_server.ModelServer(name=name, replicas=replicas,
                                      size=os.environ.get("DEMO_SIZE", "small"))
    thing = server.deployment()
    thing["spec"]["template"]["spec"]["topologySpreadConstraints"] = [{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": server.selector}}]
    if CURRENT:
        use_own_image(thing["spec"]["template"]["spec"])
    return thing


def use_own_image(pod: dict) -> None:
    """In a cluster that is not ours nothing of this machine can be mounted."""
    image = os.environ.get("DEMO_IMAGE")
    if not image:
        sys.exit("demo: CLUSTER=current needs DEMO_IMAGE: an image with torch, g++ and "
                 "/opt/model/model_server.py (tests/workload) in it")
    container = pod["containers"][0]
    container["image"] = image
    container["command"] = ["python3", "/opt/model/model_server.py"]
    keep = {"tmp"}
    container["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] in keep]
    pod["volumes"] = [v for v in pod["volumes"] if v["name"] in keep]
