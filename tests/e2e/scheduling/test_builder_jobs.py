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
echo "$REQUEST_METHOD $QUERY_STRING $(cat)" >> {DIRECTORY}/mine/kernels
printf 'Content-Type: text/plain\\r\\n\\r\\ncompiled\\n'
END
chmod +x /tmp/www/cgi-bin/compile
exec httpd -f -p {PORT} -h /tmp/www
"""


def template(app: str) -> dict:
    """A pod that serves nothing; on nodes of one GPU type."""
    container = {
        "name": "server",
        "image": "localhost/busybox:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "3600"],
    }
    spec = {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"kubernetes.io/hostname": "node-a"},
        "containers": [container],
    }
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def overrides(command: list[str]) -> dict:
    probe = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    container = {"name": "server", "command": command, "readinessProbe": probe}
    return {"metadata": {"labels": {"copy": "yes"}}, "spec": {"containers": [container]}}


def lazy(app: str, *requests: dict) -> dict:
    compile_spec = {
        "settleSeconds": 2,
        "backoffLimit": 0,
        "overrides": overrides(["sh", "-c", SERVER]),
        "requests": list(requests),
    }
    caches = [{"name": "mine", "env": "MY_CACHE", "path": "mine"}]
    return make_warmup(app, template=template(app), caches=caches, compile=compile_spec)


def request(path: str, **more: object) -> dict:
    return {"path": path, "port": PORT, **more}


def test_requests_are_sent_before_the_capture(
    shared: Kubectl, product: Product
):
    warmup = Warmup(shared, "lazy")
    shared.apply(
        lazy(
            "lazy",
            request("/cgi-bin/compile?n=1", repeat=2),
            request("/cgi-bin/compile?n=2", method="POST", body="prompt"),
        )
    )
    seen: dict[str, dict] = {}

    def captured() -> bool:
        seen.update({pods.name(pod): pod for pod in warmup.job_pods()})
        return bool(warmup.bundles)

    wait_for("the lazy server's cache is taken", captured, 120, shared)
    (pod,) = seen.values()
    container = pod["spec"]["containers"][0]
    assert container["command"][:2] == ["sh", "-c"]
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert pod["metadata"]["labels"]["copy"] == "yes"
    assert pod["spec"]["priorityClassName"] == "cachewarm-builder"
    (builder,) = warmup.builders
    assert builder["state"] == "Captured" and builder["answeredTime"], builder
    (bundle,) = warmup.bundles
    assert bundle["files"] == 1
    warmup.wait_warm()
    reader = template("lazy")
    reader["spec"]["containers"][0]["command"] = ["cat", f"{DIRECTORY}/mine/kernels"]
    reader["spec"]["restartPolicy"] = "Never"
    metadata = {**reader["metadata"], "name": "reader"}
    shared.apply({"apiVersion": "v1", "kind": "Pod", "spec": reader["spec"], "metadata": metadata})
    log = wait_for("a later pod reads what was compiled", lambda: shared.logs("reader"), 60, shared)
    assert log.splitlines() == ["GET n=1 ", "GET n=1 ", "POST n=2 prompt"]


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
    thing["spec"]["compile"]["overrides"] = overrides(dying)
    shared.apply(thing)
    condition = warmup.wait_condition("Degraded", "True", "BuildFailed", 120)
    assert "exit 7" in condition["message"] and "gemm_42" in condition["message"]


@pytest.mark.parametrize(
    "name,patch,words",
    [
        ("other-image", {"spec": {"containers": [{"name": "server", "image": "x"}]}}, "image"),
        ("host-network", {"spec": {"hostNetwork": True}}, "hostNetwork"),
        ("host-pid", {"spec": {"hostPID": True}}, "hostPID"),
        (
            "host-path",
            {"spec": {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}},
            "must not differ from the workload's",
        ),
        (
            "gone",
            {"spec": {"containers": [{"name": "server", "$patch": "delete"}]}},
            "must not be removed",
        ),
    ],
)
def test_dangerous_overrides_create_no_job(
    shared: Kubectl, product: Product, name: str, patch: dict, words: str
):
    warmup = Warmup(shared, name)
    thing = lazy(name, request("/"))
    thing["spec"]["compile"]["overrides"] = patch
    shared.apply(thing)
    wait_for(
        "the reason is reported", lambda: words in json.dumps(warmup.condition("Warm")), 60, shared
    )
    assert not warmup.jobs() and not warmup.job_pods()


def test_condition_shows_why_the_api_server_rejected_a_job(
    shared: Kubectl, product: Product
):
    warmup = Warmup(shared, "misspelt")
    thing = lazy("misspelt", request("/"))
    patch = {"spec": {"containers": [{"name": "server", "tty": "maybe"}]}}
    thing["spec"]["compile"]["overrides"] = patch
    shared.apply(thing)
    condition = warmup.wait_condition("Degraded", "True", "BuildFailed", 60)
    assert "rejected Job" in condition["message"] and "tty" in condition["message"]
    assert warmup.builders[0]["reason"] == "BuilderJobRejected"
    shared.apply(lazy("misspelt", request("/cgi-bin/compile?n=3")))
    warmup.wait_bundles(1, 120)
