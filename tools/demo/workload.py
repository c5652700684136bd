# SPDX-License-Identifier: Apache-2.0
"""The objects that the demo installs and runs, in the built-in or the current cluster."""

import os

from harness import installation, model_server
from harness.cluster import Cluster
from harness.installation import Image
from harness.kubectl import Kubectl
from harness.product import Product

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
    kubectl = Kubectl("kubectl")
    config: dict = {"store": os.environ.get("STORE", f"oci://{registry}/bundles")}
    if insecure := os.environ.get("REGISTRY_INSECURE"):
        config["registry"] = {"insecure": insecure.split(",")}
    system = kubectl.within(installation.NAMESPACE)
    installation.apply(system, installation.objects(
        config, lambda program: Image(f"{registry}/cachewarm-{program}:dev")))
    installation.wait_ready(system, 300)
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
    """Replaces mounts of this machine by DEMO_IMAGE, because only the built-in cluster has them."""
    container = pod["containers"][0]
    container["image"] = os.environ["DEMO_IMAGE"]
    container["command"] = ["python3", "/opt/model/model_server.py"]
    keep = {"tmp"}
    container["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] in keep]
    pod["volumes"] = [v for v in pod["volumes"] if v["name"] in keep]
