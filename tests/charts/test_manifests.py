# SPDX-License-Identifier: Apache-2.0
"""Checks manifests/install.yaml without a cluster."""
import subprocess

import pytest
import yaml

from conftest import ROOT

OPERATOR = "system:serviceaccount:cachewarm-system:cachewarm-operator"
AGENT = "system:serviceaccount:cachewarm-system:cachewarm-agent"
RELEASE = "system:serviceaccount:cachewarm-system:cachewarm-release"

SALTS = ["cachewarm-salt", "cachewarm-engine-salt"]


def rules_of(installed, kind, name):
    return {(group, resource): set(rule["verbs"])
            for rule in installed[kind, name]["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"]}


def container_of(installed, kind, name):
    spec = installed[kind, name]["spec"]["template"]["spec"]
    assert len(spec["containers"]) == 1
    return spec, spec["containers"][0]


def test_install_yaml_is_the_rendered_chart():
    done = subprocess.run([ROOT / "tools/render-manifests", "--check"], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout


def test_crds_come_before_the_policy(installed):
    kinds = [kind for kind, _ in installed]
    assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "CustomResourceDefinition"]
    assert kinds[-2:] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


def test_namespace_admits_the_agent(installed):
    labels = installed["Namespace", "cachewarm-system"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_agent_may_only_update_nodecaches(installed):
    assert rules_of(installed, "ClusterRole", "cachewarm-agent") == {
        ("cachewarm.io", "nodecaches"): {"list", "watch"},
        ("cachewarm.io", "nodecaches/status"): {"patch"}}


def test_operator_has_exactly_the_rights_it_needs(installed):
    look = {"list", "watch"}
    assert rules_of(installed, "ClusterRole", "cachewarm-operator") == {
        ("cachewarm.io", "cachewarmups"): look | {"create", "patch", "delete"},
        ("cachewarm.io", "cachewarmups/status"): {"patch"},
        ("cachewarm.io", "nodecaches"): look | {"create", "patch", "delete"},
        ("", "pods"): look | {"get", "create", "patch"},
        ("", "nodes"): look | {"patch"},
        ("", "namespaces"): look,
        ("", "services"): look,
        ("apps", "deployments"): look,
        ("apps", "statefulsets"): look,
        ("batch", "jobs"): look | {"create", "delete"},
        ("policy", "poddisruptionbudgets"): look,
        ("batch", "cronjobs"): look,
        ("resource.k8s.io", "resourceslices"): {"list", "watch"},
        ("argoproj.io", "rollouts"): look,
        ("leaderworkerset.x-k8s.io", "leaderworkersets"): look,
        ("ray.io", "rayclusters"): look,
        ("serving.kserve.io", "inferenceservices"): look,
        ("serving.kserve.io", "llminferenceservices"): look,
        ("events.k8s.io", "events"): {"list", "watch", "create", "patch"},
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): {"get"},
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): {"get"},
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"get"},
        ("apiextensions.k8s.io", "customresourcedefinitions"): {"get"}}
    leases = installed["Role", "cachewarm-operator"]["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in leases] == [
        (["leases"], None, ["create"]),
        (["leases"], ["cachewarm-operator"], ["get", "update"]),
        (["secrets"], SALTS, ["get", "update"])]


def test_operator_reads_no_other_definitions_and_configurations(installed):
    named = {rule["apiGroups"][0]: rule["resourceNames"]
             for rule in installed["ClusterRole", "cachewarm-operator"]["rules"]
             if rule["verbs"] == ["get"]}
    definitions = [name for kind, name in installed if kind == "CustomResourceDefinition"]
    assert named == {"admissionregistration.k8s.io": ["cachewarm.io"],
                     "apiextensions.k8s.io": definitions}


def test_no_role_reads_secrets_but_those_of_the_salts(installed):
    for (kind, name), thing in installed.items():
        if kind in ("Role", "ClusterRole"):
            for rule in thing["rules"]:
                assert "*" not in rule["resources"], name
                if "secrets" in rule["resources"]:
                    assert (kind, name) == ("Role", "cachewarm-operator"), name
                    assert rule["resourceNames"] == SALTS, name
                assert "*" not in rule["verbs"] and "*" not in rule["apiGroups"], name


@pytest.mark.parametrize("kind,name", [("Deployment", "cachewarm-operator"),
                                       ("DaemonSet", "cachewarm-agent")])
def test_pods_have_minimal_host_access(installed, kind, name):
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


def test_operator_runs_unprivileged_with_two_replicas(installed):
    spec, container = container_of(installed, "Deployment", "cachewarm-operator")
    assert installed["Deployment", "cachewarm-operator"]["spec"]["replicas"] == 2
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 65532
    assert "add" not in container["securityContext"]["capabilities"]
    assert not any("hostPath" in volume for volume in spec["volumes"])


def test_operators_spread_over_nodes_and_zones(installed):
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


def test_cron_job_releases_pods_every_minute_with_minimal_rights(installed):
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
    # These pods count neither for the operator's PodDisruptionBudget nor for its anti-affinity.
    labels = cron["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] == "release"


def test_agent_has_four_capabilities_and_one_directory(installed):
    spec, container = container_of(installed, "DaemonSet", "cachewarm-agent")
    assert sorted(container["securityContext"]["capabilities"]["add"]) == [
        "CHOWN", "DAC_OVERRIDE", "FOWNER", "LEASE"]
    root = next(v for v in spec["volumes"] if v["name"] == "root")["hostPath"]
    assert root == {"path": "/var/lib/cachewarm", "type": "DirectoryOrCreate"}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["root"]["mountPath"] == root["path"]
    assert mounts["root"].get("mountPropagation", "None") == "None"
    assert all(mount["readOnly"] for name, mount in mounts.items() if name != "root")


def test_admission_policy_fails_open(installed):
    policy = installed["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    assert policy["failurePolicy"] == "Ignore"
    binding = installed["MutatingAdmissionPolicyBinding", "cachewarm.io"]["spec"]
    assert binding["paramRef"]["parameterNotFoundAction"] == "Allow"
    assert binding["paramRef"]["selector"] == {"matchLabels": {"cachewarm.io/inject": "true"}}


def test_admission_policy_skips_system_and_restricted_namespaces(installed):
    policy = installed["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    rules = policy["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert {rule["key"]: rule["values"] for rule in rules} == {
        "pod-security.kubernetes.io/enforce": ["baseline", "restricted"],
        "kubernetes.io/metadata.name": ["kube-system", "cachewarm-system"]}
    assert {rule["operator"] for rule in rules} == {"NotIn"}


def test_agents_tolerate_every_taint(installed):
    spec = installed["DaemonSet", "cachewarm-agent"]["spec"]["template"]["spec"]
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_write_policies_deny_and_fail_closed(installed):
    policies = [name for kind, name in installed if kind == "ValidatingAdmissionPolicy"]
    assert sorted(policies) == ["agent.cachewarm.io", "host-paths.cachewarm.io",
                                "operator-jobs.cachewarm.io", "operator-nodes.cachewarm.io",
                                "operator-pods.cachewarm.io",
                                "operator-warmups.cachewarm.io",
                                "release-pods.cachewarm.io",
                                "writers.cachewarm.io"]
    for name in policies:
        assert installed["ValidatingAdmissionPolicy", name]["spec"]["failurePolicy"] == "Fail"
        binding = installed["ValidatingAdmissionPolicyBinding", name]["spec"]
        assert binding == {"policyName": name, "validationActions": ["Deny"]}


def test_policies_name_the_installed_service_accounts(installed):
    text = yaml.safe_dump([thing for (kind, _), thing in installed.items()
                           if kind == "ValidatingAdmissionPolicy"], width=10_000)
    for user in (OPERATOR, AGENT, RELEASE):
        _, _, namespace, name = user.split(":")
        account = installed["ServiceAccount", name]
        assert account["metadata"]["namespace"] == namespace
        assert user in text
