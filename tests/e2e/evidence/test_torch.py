# SPDX-License-Identifier: Apache-2.0
"""A real torch, and a real Prometheus with the settings of the shipped monitors: hit rate and saved
seconds are what the pods' own logs say, also after restarts."""

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.evidence import NODES, assert_reported_after_restarts, measure, read_start
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.prometheus import Monitoring

WARM_STARTS = 9
SERVER = ModelServer(name="torch", size="medium", nodes=NODES, one_per_node=True)


@pytest.mark.slow
def test_prometheus_reports_nine_hits_in_ten_starts_of_torch(
    kubectl: Kubectl, product: Product, cluster: Cluster, monitored: Monitoring
):
    measured = measure(kubectl, cluster, SERVER, lambda pod: read_start(kubectl, pod), WARM_STARTS)
    assert measured.share("hit") == 0.9, measured
    assert_reported_after_restarts(monitored, product, measured)


def test_every_series_of_an_agent_has_the_label_of_its_node(
    product: Product, monitored: Monitoring
):
    samples = monitored.prometheus.query("cachewarm_warm_generations")
    seen = {labels["pod"]: labels["node"] for labels, _ in samples}
    assert seen == {pods.name(pod): pods.node(pod) for pod in product.pods("agent")}
