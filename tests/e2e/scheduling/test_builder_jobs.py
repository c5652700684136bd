# SPDX-License-Identifier: Apache-2.0
"""Builder Jobs of servers that compile only when they are asked: spec.compile.overrides makes the
copy a server, spec.compile.requests asks it, and the cache is taken after the last answer."""

import json

import pytest
from harness import pods
from harness.kubectl import Kubectl
from harness.product import Product
from harness.waiting import wait_for
from harness.warmup import DIRECTORY, Warmup, make_warmup

PORT = 8080
# Compiles when /cgi-bin/compile is asked, and says for what.
SERVER = f"""
mkdir -p /tmp/www/cgi-bin
cat > /tmp/www/cgi-bin/compile <<'END'
#!/bin/sh
mkdir -p {DIRECTORY}/mine
echo "$REQUEST_METHOD $QUERY_STRING $KERNELS $(cat)" >> {DIRECTORY}/mine/kernels
printf 'Content-Type: text/plain\\r\\n\\r\\ncompiled\\n'
END
chmod +x /tmp/www/cgi-bin/compile
exec httpd -f -p {PORT} -h /tmp/www
"""


SIDECAR = {
    "name": "sidecar",
    "image": "localhost/busybox:1",
    "imagePullPolicy": "IfNotPresent",
    "command": ["sh", "-c", "trap exit TERM; while :; do sleep 0.2; done"],
    "resources": {"requests": {"cpu": "20m"}},
}


def template(app: str) -> dict:
    """A pod that serves nothing; on nodes of one GPU type."""
    server = {
        "name": "server",
        "image": "localhost/busybox:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep"],
        "args": ["3600"],
        "env": [{"name": "KERNELS", "value": "none"}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    spec = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"kubernetes.io/hostname": "node-a"},
        "containers": [server],
    }
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def lazy(app: str, *requests: dict) -> dict:
    compile_spec = {
        "settleSeconds": 2,
        "backoffLimit": 0,
        "overrides": {
            "command": ["sh", "-c", SERVER],
            "env": [{"name": "KERNELS", "value": "gemm"}],
            "tolerations": [{"key": "spare", "operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
        },
        "requests": list(requests),
    }
    caches = [{"name": "mine", "env": "MY_CACHE", "path": "mine"}]
    return make_warmup(app, template=template(app), caches=caches, compile=compile_spec)


def with_sidecar(warmup: dict, **resources: object) -> dict:
    """The sidecar in the template, and its resources among the overrides."""
    warmup["spec"]["template"]["spec"]["containers"].append(SIDECAR)
    overridden = {"container": "sidecar", **resources}
    warmup["spec"]["compile"]["overrides"]["resources"] = [overridden]
    return warmup


def request(path: str, **more: object) -> dict:
    return {"path": path, "port": PORT, **more}


def test_requests_are_sent_before_the_capture(
    shared: Kubectl, product: Product
):
    warmup = Warmup(shared, "lazy")
    asked = lazy(
        "lazy",
        request("/cgi-bin/compile?n=1", repeat=2),
        request("/cgi-bin/compile?n=2", method="POST", body="prompt"),
    )
    shared.apply(with_sidecar(asked, requests={"cpu": "10m"}))
    seen: dict[str, dict] = {}

    def captured() -> bool:
        seen.update({pods.name(pod): pod for pod in warmup.job_pods()})
        return bool(warmup.bundles)

    wait_for("the lazy server's cache is taken", captured, 120, shared)
    (pod,) = seen.values()
    container, sidecar = pod["spec"]["containers"]
    assert container["command"][:2] == ["sh", "-c"] and "args" not in container
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert sidecar["resources"] == {"requests": {"cpu": "10m"}}
    assert "spare" in [each.get("key") for each in pod["spec"]["tolerations"]]
    selector = {"kubernetes.io/hostname": "node-a", "kubernetes.io/os": "linux"}
    assert pod["spec"]["nodeSelector"] == selector
    assert pod["spec"]["priorityClassName"] == "cachewarm-builder"
    (builder,) = warmup.builders
    assert builder["state"] == "Captured" and builder["answeredTime"], builder
    (bundle,) = warmup.bundles
    assert bundle["files"] == 1
    warmup.wait_warm()
    reader = template("lazy")
    (server,) = reader["spec"]["containers"]
    server.update(command=["cat"], args=[f"{DIRECTORY}/mine/kernels"])
    reader["spec"]["restartPolicy"] = "Never"
    metadata = {**reader["metadata"], "name": "reader"}
    shared.apply({"apiVersion": "v1", "kind": "Pod", "spec": reader["spec"], "metadata": metadata})
    log = wait_for("a later pod reads what was compiled", lambda: shared.logs("reader"), 60, shared)
    assert log.splitlines() == ["GET n=1 gemm ", "GET n=1 gemm ", "POST n=2 gemm prompt"]


def test_failed_request_fails_the_build(shared: Kubectl, product: Product):
    warmup = Warmup(shared, "asks-wrong")
    shared.apply(lazy("asks-wrong", request("/nothing")))

    def failed() -> dict | None:
        return next((b for b in warmup.builders if b["state"] == "Failed"), None)

    builder = wait_for("the build has failed", failed, 120, shared)
    assert builder["reason"] == "BuildRequestFailed"
    assert f"GET /nothing, port {PORT}" in builder["message"]
    assert "response 404" in builder["message"]
    condition = warmup.wait_condition("Degraded", "True", "BuildFailed")
    assert "response 404" in condition["message"]
    assert not warmup.bundles


def test_condition_shows_the_termination_message_of_a_failed_builder(
    shared: Kubectl, product: Product
):
    warmup = Warmup(shared, "dies")
    thing = lazy("dies", request("/"))
    dying = ["sh", "-c", "echo no such kernel: gemm_42; exit 7"]
    thing["spec"]["compile"]["overrides"] = {"command": dying}
    shared.apply(thing)
    condition = warmup.wait_condition("Degraded", "True", "BuildFailed", 120)
    assert "exit 7" in condition["message"] and "gemm_42" in condition["message"]


@pytest.mark.parametrize(
    "name,resources,words",
    [
        ("own", {"container": "server", "limits": {"cpu": 1}}, "compiles the cache"),
        ("absent", {"container": "gone"}, "the pod template has no container"),
        ("device", {"limits": {"example.com/fuse": 1}}, "must not get 1"),
    ],
)
def test_unusable_overrides_create_no_job(
    shared: Kubectl, product: Product, name: str, resources: dict, words: str
):
    warmup = Warmup(shared, name)
    shared.apply(with_sidecar(lazy(name, request("/")), **resources))
    wait_for(
        "the reason is reported", lambda: words in json.dumps(warmup.condition("Warm")), 60, shared
    )
    assert not warmup.jobs() and not warmup.job_pods()


def test_condition_shows_why_the_api_server_rejected_a_job(
    shared: Kubectl, product: Product
):
    warmup = Warmup(shared, "misspelt")
    contradiction = {"requests": {"cpu": "20m"}, "limits": {"cpu": "10m"}}
    shared.apply(with_sidecar(lazy("misspelt", request("/")), **contradiction))
    condition = warmup.wait_condition("Degraded", "True", "BuildFailed", 60)
    assert "rejected Job" in condition["message"] and "cpu limit" in condition["message"]
    assert warmup.builders[0]["reason"] == "BuilderJobRejected"
    shared.apply(lazy("misspelt", request("/cgi-bin/compile?n=3")))
    warmup.wait_bundles(1, 120)
