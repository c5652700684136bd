# SPDX-License-Identifier: Apache-2.0
"""What manifests/install.yaml promises without a cluster."""
import subprocess

import pytest

from conftest import ROOT

OPERATOR = "system:serviceaccount:cachewarm-system:cachewarm-operator"
AGENT = "system:serviceaccount:cachewarm-system:cachewarm-agent"
RELEASE = "system:serviceaccount:cachewarm-system:cachewarm-release"


def rules_of(installed, kind, name):
    return {(group, resource): set(rule["verbs"])
            for rule in installed[kind, name]["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"]}


def container_of(installed, kind, name):
    spec = installed[kind, name]["spec"]["template"]["spec"]
    assert len(spec["containers"]) == 1
    return spec, spec["containers"][0]


def test_install_yaml_is_made_of_its_parts():
    done = subprocess.run([ROOT / "tools/render-manifests", "--check"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout


def test_definitions_come_before_the_policy_that_needs_them(installed):
    kinds = [kind for kind, _ in installed]
    assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "CustomResourceDefinition"]
    assert kinds[-2:] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


def test_namespace_admits_the_agent(installed):
    labels = installed["Namespace", "cachewarm-system"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_agent_may_report_on_nodecaches_and_nothing_else(installed):
    assert rules_of(installed, "ClusterRole", "cachewarm-agent") == {
        ("cachewarm.io", "nodecaches"): {"get", "list", "watch"},
        ("cachewarm.io", "nodecaches/status"): {"get", "patch"}}


def test_operator_has_exactly_the_rights_it_needs(installed):
    look = {"get", "list", "watch"}
    assert rules_of(installed, "ClusterRole", "cachewarm-operator") == {
        ("cachewarm.io", "cachewarmups"): look | {"create", "patch", "delete"},
        ("cachewarm.io", "cachewarmups/status"): {"get", "patch"},
        ("cachewarm.io", "nodecaches"): look | {"create", "patch", "delete"},
        ("", "pods"): look | {"create", "patch"},
        ("", "nodes"): look | {"patch"},
        ("", "nodes/status"): {"get", "patch"},
        ("", "namespaces"): look,
        ("", "services"): look,
        ("apps", "deployments"): look,
        ("apps", "statefulsets"): look,
        ("batch", "jobs"): look | {"create", "delete"},
        ("policy", "poddisruptionbudgets"): look,
        ("batch", "cronjobs"): look,
        ("argoproj.io", "rollouts"): look,
        ("leaderworkerset.x-k8s.io", "leaderworkersets"): look,
        ("ray.io", "rayclusters"): look,
        ("serving.kserve.io", "inferenceservices"): look,
        ("serving.kserve.io", "llminferenceservices"): look,
        ("events.k8s.io", "events"): {"list", "watch", "create", "patch"},
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): {"get"},
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): {"get"},
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"get"}}
    leases = installed["Role", "cachewarm-operator"]["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in leases] == [
        (["leases"], None, ["create"]),
        (["leases"], ["cachewarm-operator"], ["get", "update", "patch"])]


def test_nobody_reads_secrets(installed):
    for (kind, name), thing in installed.items():
        if kind in ("Role", "ClusterRole"):
            for rule in thing["rules"]:
                assert not {"secrets", "*"} & set(rule["resources"]), name
                assert "*" not in rule["verbs"] and "*" not in rule["apiGroups"], name


@pytest.mark.parametrize("kind,name", [("Deployment", "cachewarm-operator"),
                                       ("DaemonSet", "cachewarm-agent")])
def test_no_program_has_more_of_the_host_than_it_needs(installed, kind, name):
    spec, container = container_of(installed, kind, name)
    for shared in ("hostNetwork", "hostPID", "hostIPC"):
        assert not spec.get(shared)
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert not security.get("privileged")
    assert security["capabilities"]["drop"] == ["ALL"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]
    assert container["livenessProbe"] and container["readinessProbe"]


def test_operator_runs_as_nobody_with_a_second_one_waiting(installed):
    spec, container = container_of(installed, "Deployment", "cachewarm-operator")
    assert installed["Deployment", "cachewarm-operator"]["spec"]["replicas"] == 2
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 65532
    assert "add" not in container["securityContext"]["capabilities"]
    assert not any("hostPath" in volume for volume in spec["volumes"])


def test_operators_prefer_machines_and_zones_of_their_own_and_one_may_go_at_a_time(installed):
    spec, _ = container_of(installed, "Deployment", "cachewarm-operator")
    terms = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert [term["podAffinityTerm"]["topologyKey"] for term in terms] == [
        "kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    selector = spec_selector(installed, "Deployment", "cachewarm-operator")
    assert all(term["podAffinityTerm"]["labelSelector"] == selector for term in terms)
    budget = installed["PodDisruptionBudget", "cachewarm-operator"]["spec"]
    assert (budget["maxUnavailable"], budget["selector"]) == (1, selector)


def spec_selector(installed, kind, name):
    return installed[kind, name]["spec"]["selector"]


def test_pods_are_released_every_minute_with_rights_on_pods_alone(installed):
    assert rules_of(installed, "ClusterRole", "cachewarm-release") == {
        ("", "pods"): {"get", "list", "patch"}}
    cron = installed["CronJob", "cachewarm-release"]["spec"]
    assert cron["schedule"] == "* * * * *"
    assert cron["concurrencyPolicy"] == "Forbid"
    assert cron["jobTemplate"]["spec"]["backoffLimit"] == 0
    assert cron["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 60
    spec = cron["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "cachewarm-release"
    assert spec["restartPolicy"] == "Never" and spec["securityContext"]["runAsNonRoot"] is True
    (container,) = spec["containers"]
    assert container["command"] == ["/usr/bin/cachewarm", "release", "--all", "--all-namespaces",
                                    "--past-deadline"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]}}
    assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]
    operator = container_of(installed, "Deployment", "cachewarm-operator")[1]
    assert container["image"] == operator["image"]
    # Neither the operators' budget nor their anti-affinity counts these pods.
    labels = cron["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == "release"


def test_agent_has_four_capabilities_and_its_own_directory(installed):
    spec, container = container_of(installed, "DaemonSet", "cachewarm-agent")
    assert sorted(container["securityContext"]["capabilities"]["add"]) == [
        "CHOWN", "DAC_OVERRIDE", "FOWNER", "LEASE"]
    root = next(v for v in spec["volumes"] if v["name"] == "root")["hostPath"]
    assert root == {"path": "/var/lib/cachewarm", "type": "DirectoryOrCreate"}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["root"]["mountPath"] == root["path"]
    assert mounts["root"].get("mountPropagation", "None") == "None"
    assert all(mount["readOnly"] for name, mount in mounts.items() if name != "root")


def test_admission_policy_can_only_fail_open(installed):
    policy = installed["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    assert policy["failurePolicy"] == "Ignore"
    binding = installed["MutatingAdmissionPolicyBinding", "cachewarm.io"]["spec"]
    assert binding["paramRef"]["parameterNotFoundAction"] == "Allow"
    assert binding["paramRef"]["selector"] == {"matchLabels": {"cachewarm.io/inject": "true"}}


def test_admission_policy_leaves_system_and_strict_namespaces_alone(installed):
    policy = installed["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    rules = policy["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert {rule["key"]: rule["values"] for rule in rules} == {
        "pod-security.kubernetes.io/enforce": ["baseline", "restricted"],
        "kubernetes.io/metadata.name": ["kube-system", "cachewarm-system"]}
    assert {rule["operator"] for rule in rules} == {"NotIn"}


def test_agents_tolerate_every_taint_that_keeps_pods_off_a_fresh_node(installed):
    spec = installed["DaemonSet", "cachewarm-agent"]["spec"]["template"]["spec"]
    tolerated = {each["key"] for each in spec["tolerations"] if each["operator"] == "Exists"}
    assert {"cachewarm.io/warming", "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm",
            "readiness.k8s.io/cachewarm"} <= tolerated


def test_every_policy_on_writers_denies_and_fails_closed(installed):
    policies = [name for kind, name in installed if kind == "ValidatingAdmissionPolicy"]
    assert sorted(policies) == ["agent.cachewarm.io", "operator-jobs.cachewarm.io",
                                "operator-nodes.cachewarm.io", "operator-pods.cachewarm.io",
                                "operator-warmups.cachewarm.io",
                                "release-pods.cachewarm.io",
                                "writers.cachewarm.io"]
    for name in policies:
        assert installed["ValidatingAdmissionPolicy", name]["spec"]["failurePolicy"] == "Fail"
        binding = installed["ValidatingAdmissionPolicyBinding", name]["spec"]
        assert binding == {"policyName": name, "validationActions": ["Deny"]}


def test_policies_name_the_identities_that_are_installed(installed):
    text = (ROOT / "manifests/write-policy.yaml").read_text()
    for user in (OPERATOR, AGENT, RELEASE):
        _, _, namespace, name = user.split(":")
        account = installed["ServiceAccount", name]
        assert account["metadata"]["namespace"] == namespace
        assert f"'{user}'" in text
