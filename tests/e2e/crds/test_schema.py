# SPDX-License-Identifier: Apache-2.0
"""Tests validation, defaults and kubectl output of crds/ on a real API server."""

import json

import pytest

from harness.definitions import answer, golden, nodecache, refusal, warmup

SELECTOR = {"matchLabels": {"app": "llama"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
TEMPLATE = {"metadata": {"labels": {"app": "llama"}}, "spec": {"containers": [{"name": "c"}]}}
ASK = {"path": "/", "port": 80}
OWN = {"name": "mine", "env": "MY_CACHE", "path": "my/cache"}

ACCEPTED = {
    "a deployment": {"workloadRef": DEPLOYMENT},
    "a stateful set": {"workloadRef": {**DEPLOYMENT, "kind": "StatefulSet"}},
    "a job": {"workloadRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama.2"}},
    "a selector alone": {"selector": SELECTOR},
    "a bare template": {"template": TEMPLATE},
    "a template with everything a pod may have": {
        "template": {
            "metadata": {"labels": {"app": "llama"}, "creationTimestamp": None},
            "spec": {
                "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "topologySpreadConstraints": [],
            },
        }
    },
    "a template with a selector": {
        "template": {"spec": {"containers": [{"name": "c"}]}},
        "selector": SELECTOR,
        "compile": {"builder": "FirstPod"},
    },
    "presets and caches of one's own": {"selector": SELECTOR, "caches": [{"name": "vllm"}, OWN]},
    # Rejected by the operator: tests/e2e/main_job/test_bad_input.py.
    "a name that is no preset": {"selector": SELECTOR, "caches": [{"name": "tritton"}]},
    "a preset's name for one's own cache": {
        "selector": SELECTOR,
        "caches": [{**OWN, "name": "vllm"}],
    },
    "globs of one's own": {"selector": SELECTOR, "caches": [{**OWN, "include": ["**/*.so"]}]},
    "overrides and requests": {
        "template": TEMPLATE,
        "compile": {
            "overrides": {
                "command": ["sh", "-c", "serve"],
                "args": ["--warm"],
                "env": [{"name": "MODE", "value": ""}],
                "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
                "nodeSelector": {"pool": "spare"},
                "resources": [
                    {"container": "d", "requests": {"cpu": "500m"}, "limits": {"memory": "1.5Gi"}},
                    {"container": "e", "limits": {"nvidia.com/gpu": 0}},
                ],
            },
            "requests": [
                {"path": "/v1/completions?a=b", "port": 8000},
                {**ASK, "method": "POST", "body": "{}", "expectStatus": 201, "repeat": 100},
                {**ASK, "headers": [{"name": "Content-Type", "value": "text/plain"}]},
            ],
        },
    },
    "every limit": {
        "selector": SELECTOR,
        "compile": {"timeoutSeconds": 86400, "settleSeconds": 1, "backoffLimit": 0},
        "gate": {"mode": "Never", "maxHoldSeconds": 3600},
        "hangSeconds": 86400,
        "harvest": True,
        "retain": 16,
        "gpuTypes": ["cpu", "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb"],
    },
}

# Problem → (spec, words of the error message).
REFUSED = {
    "no pods selected": ({"paused": True}, "set one of workloadRef, template or selector"),
    "pods selected twice": (
        {"workloadRef": DEPLOYMENT, "selector": SELECTOR},
        "workloadRef excludes template and selector: remove them, or remove workloadRef",
    ),
    "a daemon set": (
        {"workloadRef": {**DEPLOYMENT, "kind": "DaemonSet"}},
        "workloadRef cannot be DaemonSet of apps/v1: use a Deployment or StatefulSet of apps/v1, "
        "a Job or CronJob of batch/v1",
    ),
    "an unknown kind": (
        {
            "workloadRef": {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "name": "llama",
            }
        },
        "for pods of any other owner give spec.selector alone",
    ),
    "a name that is a path": ({"workloadRef": {**DEPLOYMENT, "name": "../x"}}, "should match"),
    "no name": ({"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment"}}, "Required value"),
    "an empty selector": ({"selector": {"matchLabels": {}}}, "at least 1 properties"),
    "expressions": (
        {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": []}},
        'unknown field "spec.selector.matchExpressions"',
    ),
    "a template without labels": (
        {"template": {"spec": {"containers": [{"name": "c"}]}}},
        "template needs metadata.labels, or a selector, to identify its pods",
    ),
    "a template without containers": (
        {"template": {"metadata": TEMPLATE["metadata"], "spec": {"containers": []}}},
        "at least 1 items",
    ),
    "a first pod of a bare template": (
        {"template": TEMPLATE, "compile": {"builder": "FirstPod"}},
        "a template without selector has no pods that could compile: "
        "set compile.builder to Job or Auto",
    ),
    "a path without a variable": (
        {"selector": SELECTOR, "caches": [{"name": "mine", "path": "a"}]},
        "a custom cache needs both env and path; a preset needs neither",
    ),
    "a variable without a path": (
        {"selector": SELECTOR, "caches": [{"name": "mine", "env": "A"}]},
        "a custom cache needs both env and path; a preset needs neither",
    ),
    "a cache name that is no DNS label": (
        {"selector": SELECTOR, "caches": [{"name": "Triton"}]},
        "spec.caches[0].name",
    ),
    "a cache name that is too long": (
        {"selector": SELECTOR, "caches": [{"name": "t" * 41}]},
        "spec.caches[0].name",
    ),
    "a glob that JSON writes longer": (
        {"selector": SELECTOR, "caches": [{**OWN, "include": ["a<b"]}]},
        "spec.caches[0].include[0]",
    ),
    "globs for a preset": (
        {"selector": SELECTOR, "caches": [{"name": "vllm", "include": ["*"]}]},
        "include is only for custom caches",
    ),
    "a path that leaves the directory": (
        {"selector": SELECTOR, "caches": [{**OWN, "path": "a/../../etc"}]},
        "path must be relative, below the mounted cache directory, without . and ..",
    ),
    "an absolute path": (
        {"selector": SELECTOR, "caches": [{**OWN, "path": "/etc"}]},
        "path must be relative",
    ),
    "two caches of one name": (
        {"selector": SELECTOR, "caches": [{"name": "vllm"}, {"name": "vllm"}]},
        "Duplicate value",
    ),
    "too many caches": (
        {"selector": SELECTOR, "caches": [{**OWN, "name": f"c{i}"} for i in range(33)]},
        "must have at most 32 items",
    ),
    "no time to compile": (
        {"selector": SELECTOR, "compile": {"timeoutSeconds": 0}},
        "greater than or equal to 1",
    ),
    "an endless hold": (
        {"selector": SELECTOR, "gate": {"maxHoldSeconds": 100000}},
        "less than or equal to 3600",
    ),
    "an unknown builder": (
        {"selector": SELECTOR, "compile": {"builder": "Pod"}},
        'supported values: "Auto", "FirstPod", "Job"',
    ),
    "overrides of the user's own pods": (
        {"selector": SELECTOR, "compile": {"builder": "FirstPod", "overrides": {"args": ["a"]}}},
        "overrides and requests are for builder Jobs: set builder to Job or Auto",
    ),
    "a proof of bundles that no Job builds": (
        {"selector": SELECTOR, "compile": {"builder": "Auto", "proof": "Engine"}},
        "only bundles of builder Jobs are proven: set builder to Job, or remove proof",
    ),
    **{
        f"overrides {title}": ({"template": TEMPLATE, "compile": {"overrides": patch}}, words)
        for title, patch, words in [
            ("without a field", {}, "should have at least 1 properties"),
            ("of a pod", {"spec": {}}, 'unknown field "spec.compile.overrides.spec"'),
            ("of the image", {"image": "x"}, 'unknown field "spec.compile.overrides.image"'),
            (
                "from a Secret",
                {"env": [{"name": "A", "valueFrom": {}}]},
                'unknown field "spec.compile.overrides.env[0].valueFrom"',
            ),
            ("of every taint", {"tolerations": [{"operator": "Exists"}]}, "key: Required value"),
            (
                "of a taint's every value",
                {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
                "value must be empty if operator is Exists",
            ),
            ("too long", {"args": ["a"] * 65}, "must have at most 64 items"),
            *(
                (
                    f"by {amount}",
                    {"resources": [{"container": "a", "limits": {"cpu": amount}}]},
                    words,
                )
                for amount, words in [
                    ("much", "should match"),
                    (-1, "greater than or equal to 0"),
                    (0.5, "must be of type"),
                ]
            ),
        ]
    },
    **{
        f"a request {title}": ({"template": TEMPLATE, "compile": {"requests": requests}}, words)
        for title, requests, words in [
            ("too many", [ASK] * 17, "must have at most 16 items"),
            ("to nowhere", [{"path": "/"}], "port: Required value"),
            ("to another host", [{**ASK, "path": "//other/"}], "should match"),
            ("with two lines", [{**ASK, "path": "/ HTTP/1.1\r\nA: b"}], "should match"),
            ("by tunnel", [{**ASK, "method": "CONNECT"}], "Unsupported value"),
            ("for ever", [{**ASK, "timeoutSeconds": 3601}], "less than or equal to 3600"),
            ("too often", [{**ASK, "repeat": 101}], "less than or equal to 100"),
            ("too large", [{**ASK, "body": "x" * 65537}], "may not be more than 65536"),
            (
                "with a second line in a header",
                [{**ASK, "headers": [{"name": "A", "value": "b\nC: d"}]}],
                "should match",
            ),
            (
                "with a framing header",
                [{**ASK, "headers": [{"name": "Transfer-Encoding", "value": "chunked"}]}],
                "the operator sets this header itself: remove it",
            ),
        ]
    },
    "a boolean": (
        {"selector": SELECTOR, "gate": {"mode": False}},
        'supported values: "Auto", "Hold", "Never"',
    ),
    "an unknown field": (
        {"selector": SELECTOR, "harvestSeconds": 60},
        'unknown field "spec.harvestSeconds"',
    ),
}


@pytest.mark.parametrize("name", ["cachewarmups.cachewarm.io", "nodecaches.cachewarm.io"])
def test_definition_is_established_and_structural(admin, name):
    status = admin.get("crd", name)["status"]
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert status["storedVersions"] == ["v1alpha1"]


@pytest.mark.parametrize("what", ACCEPTED)
def test_valid_object_is_accepted(admin, what):
    assert refusal(admin, warmup(**ACCEPTED[what])) == ""


@pytest.mark.parametrize("what", REFUSED)
def test_invalid_object_is_rejected_with_a_helpful_message(admin, what):
    spec, words = REFUSED[what]
    assert words in refusal(admin, warmup(**spec))


@pytest.mark.parametrize("name", ["Llama", "a.b", "x" * 46])
def test_invalid_name_is_rejected(admin, name):
    words = refusal(admin, warmup(name))
    assert "at most 45 characters" in words or "RFC 1123" in words


def test_defaults_are_filled_in(admin):
    made = admin.create(warmup(), "--dry-run=server")
    assert made["spec"] == {
        "selector": SELECTOR,
        "compile": {
            "builder": "Auto",
            "timeoutSeconds": 1800,
            "pendingSeconds": 600,
            "settleSeconds": 10,
            "backoffLimit": 3,
        },
        "gate": {"mode": "Auto", "maxHoldSeconds": 60},
        "hangSeconds": 300,
        "retain": 1,
        "paused": False,
    }


@pytest.mark.parametrize(
    "field,words",
    [
        ("cw", ["A CacheWarmup makes one workload start warm"]),
        ("cw.spec", ["workloadRef\t<Object>", "selector\t<Object>", "caches\t<[]Object>"]),
        (
            "cw.spec.compile",
            [
                "builder\t<string>\n  enum: Auto, FirstPod, Job",
                "timeoutSeconds\t<integer>",
                "Default 1800.",
                "Default 600.",
                "Default 10.",
                "Default 3.",
            ],
        ),
        ("cw.spec.gate", ["enum: Auto, Hold, Never", "Default 60."]),
        ("cw.status.starts.counts", ["hollow\t<integer>"]),
        ("nc.status.node", ["gpuType\t<string>", "cpuClass\t<string>"]),
    ],
)
def test_explain_reads_well(admin, field, words):
    text = admin.run("explain", field)
    assert [word for word in words if word not in text] == []
    assert "<no description>" not in text


def test_columns_of_a_warmup(kubectl):
    kubectl.apply(warmup())
    header = kubectl.run("get", "cw").splitlines()[0].split()
    assert header == ["NAME", "TYPES", "NODES", "HIT", "PARTIAL", "SAVED", "READY", "WARM", "AGE"]
    wide = kubectl.run("get", "cw", "-o", "wide").splitlines()[0].split()
    assert wide == [*header[:-1], "REASON", "AGE"]
    assert "llama" in kubectl.run("get", "cachewarm")


def test_columns_of_a_node_cache(kubectl, operator):
    operator.run("apply", "--server-side", "-f", "-", text_in=json.dumps(nodecache("columns")))
    try:
        header = kubectl.run("get", "nc", "columns").splitlines()[0].split()
        assert header == ["NAME", "GPU-TYPE", "CPU-CLASS", "USED", "FREE", "AGE"]
    finally:
        operator.delete("nodecache", "columns")


def test_status_cannot_be_written_with_the_object(admin):
    made = admin.create({**warmup(), "status": {"observedGeneration": 5}}, "--dry-run=server")
    assert "status" not in made


def test_golden_warmup_is_accepted_field_by_field(admin):
    full = golden("cachewarmup.json")
    made = admin.create(full, "--dry-run=server", "--validate=strict")
    assert made["spec"] == full["spec"]


def test_golden_status_with_an_unknown_field_is_rejected(kubectl, operator):
    full = golden("cachewarmup.json")
    kubectl.apply({key: full[key] for key in ("apiVersion", "kind", "metadata", "spec")})
    full["status"]["surprise"] = 1
    words = answer(
        operator,
        "apply", "--server-side", "--subresource=status", "--dry-run=server", "-f", "-",
        given=full,
    )
    assert "surprise" in words
