# SPDX-License-Identifier: Apache-2.0
"""An upgrade without its CRDs: the new operator waits for them, and the old one leads. A replaced
standby plays the operator of the new release, a CRD without one field that of the old one."""

import pytest

from harness import definitions, pods
from harness.kubectl import Kubectl
from harness.product import Product
from harness.waiting import holds_for, wait_for

CRD = "cachewarmups.cachewarm.io"
FIELD = "suspendedBundles"  # written only where a bundle is suspended: the leader does without it
PATH = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/" + FIELD


@pytest.fixture
def older_crd(product: Product):
    admin = product.cluster.kubectl()
    admin.patch("crd", CRD, [{"op": "remove", "path": PATH}])
    try:
        yield admin
    finally:
        update(admin)
        product.wait_ready()


def update(admin: Kubectl) -> None:
    admin.apply(definitions.objects()["CustomResourceDefinition", CRD], server_side=True)


def test_new_operator_waits_for_its_crds_while_the_old_one_leads(product: Product, older_crd):
    wait_for("a replica leads", product.leader, 60, product.kubectl)
    holder = product.lease_holder()
    before = {pods.name(pod) for pod in product.pods("operator")}
    (standby,) = before - {product.leader()}
    product.kubectl.delete("pod", standby, "--wait=true")

    def replacement() -> dict | None:
        return next((p for p in product.pods("operator") if pods.name(p) not in before), None)

    new = pods.name(wait_for("the standby is replaced", replacement, 60, product.kubectl))
    message = (
        f"CustomResourceDefinition {CRD} is older than this operator: version v1alpha1 has no "
        f"field status.{FIELD}; run kubectl apply --server-side -f crds/"
    )
    wait_for(
        "its log names field and remedy",
        lambda: message in product.kubectl.logs(new),
        60,
        product.kubectl,
    )
    holds_for(
        "it is not ready, and the old one leads",
        lambda: not pods.ready(product.kubectl.get("pod", new))
        and product.lease_holder() == holder,
        20,
    )

    update(older_crd)
    wait_for(
        "it is ready", lambda: pods.ready(product.kubectl.get("pod", new)), 30, product.kubectl
    )
    assert pods.restarts(product.kubectl.get("pod", new)) == 0
    assert product.lease_holder() == holder
