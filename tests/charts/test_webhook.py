# SPDX-License-Identifier: Apache-2.0
"""Checks the objects for API servers without mutating admission policies."""
import pytest

from conftest import CHART
from test_chart import plain

WEBHOOK = {("Secret", "cachewarm-webhook"), ("Role", "cachewarm-webhook"),
           ("RoleBinding", "cachewarm-webhook"), ("ClusterRole", "cachewarm-webhook"),
           ("ClusterRoleBinding", "cachewarm-webhook"), ("Service", "cachewarm-webhook"),
           ("MutatingWebhookConfiguration", "cachewarm.io")}
POLICY = {("MutatingAdmissionPolicy", "cachewarm.io"),
          ("MutatingAdmissionPolicyBinding", "cachewarm.io")}


def webhook_of(things):
    webhooks = things["MutatingWebhookConfiguration", "cachewarm.io"]["webhooks"]
    assert len(webhooks) == 1
    return webhooks[0]


def test_installs_differ_only_in_injection(installed, installed_older):
    assert set(installed) - set(installed_older) == POLICY
    assert set(installed_older) - set(installed) == WEBHOOK
    for key in set(installed) & set(installed_older):
        assert installed[key] == installed_older[key], key


def test_webhook_fails_open(installed_older):
    webhook = webhook_of(installed_older)
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] == 2
    assert webhook["sideEffects"] == "None"


def test_webhook_matches_the_same_pods_as_the_policy(installed, installed_older):
    policy = installed["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    webhook = webhook_of(installed_older)
    assert webhook["namespaceSelector"] == policy["matchConstraints"]["namespaceSelector"]
    assert webhook["rules"] == policy["matchConstraints"]["resourceRules"]
    assert webhook["reinvocationPolicy"] == policy["reinvocationPolicy"]
    of_policy = {c["name"]: c["expression"] for c in policy["matchConditions"]}
    for condition in webhook["matchConditions"]:
        assert of_policy[condition["name"]].startswith(condition["expression"]), condition["name"]


def test_operator_reads_one_secret_and_patches_one_configuration(installed_older):
    rules = installed_older["Role", "cachewarm-webhook"]["rules"]
    assert rules == [{"apiGroups": [""], "resources": ["secrets"],
                      "resourceNames": ["cachewarm-webhook"], "verbs": ["get", "update"]}]
    assert installed_older["ClusterRole", "cachewarm-webhook"]["rules"] == [
        {"apiGroups": ["admissionregistration.k8s.io"],
         "resources": ["mutatingwebhookconfigurations"],
         "resourceNames": ["cachewarm.io"], "verbs": ["patch"]}]


def test_service_uses_the_port_of_the_operator(installed_older):
    service = installed_older["Service", "cachewarm-webhook"]["spec"]
    target = webhook_of(installed_older)["clientConfig"]["service"]
    assert (target["name"], target["namespace"]) == ("cachewarm-webhook", "cachewarm-system")
    assert service["ports"] == [{"name": "webhook", "port": target["port"], "targetPort": 8443}]
    labels = installed_older["Deployment", "cachewarm-operator"]["spec"]["template"]["metadata"]
    assert service["selector"].items() <= labels["labels"].items()


@pytest.mark.parametrize("words", [("--set", "admission=webhook"), ("--kube-version", "1.34.2")])
def test_chart_renders_install_webhook_yaml(helm, installed_older, words):
    # Only the chart has a hook for helm uninstall.
    rendered = helm.template("--set", "uninstall.enabled=false", *words)
    wanted = {key: plain(thing) for key, thing in installed_older.items() if key[0] != "Namespace"}
    assert set(rendered) == set(wanted)
    for key, thing in wanted.items():
        assert plain(rendered[key]) == thing, key


def test_server_version_selects_the_admission_by_default(helm):
    newer = helm.template("--kube-version", "1.36.0")
    assert POLICY <= set(newer) and not WEBHOOK & set(newer)
    said = helm.template("--kube-version", "1.34.2", "--set", "admission=policy")
    assert POLICY <= set(said) and not WEBHOOK & set(said)


def test_namespace_is_used_in_the_webhook(helm):
    rendered = helm.template("--set", "admission=webhook", namespace="elsewhere")
    webhook = webhook_of(rendered)
    assert webhook["clientConfig"]["service"]["namespace"] == "elsewhere"
    assert webhook["namespaceSelector"]["matchExpressions"][1]["values"] == [
        "kube-system", "elsewhere"]


def test_cert_manager_issues_the_certificate_if_configured(helm):
    rendered = helm.template("--set", "admission=webhook,webhook.issuerRef.kind=ClusterIssuer",
                             "--set", "webhook.issuerRef.name=ca")
    certificate = rendered["Certificate", "cachewarm-webhook"]["spec"]
    assert certificate["issuerRef"] == {"kind": "ClusterIssuer", "name": "ca"}
    assert certificate["secretName"] == "cachewarm-webhook"
    assert certificate["dnsNames"] == ["cachewarm-webhook.cachewarm-system.svc"]
    configuration = rendered["MutatingWebhookConfiguration", "cachewarm.io"]["metadata"]
    assert configuration["annotations"] == {
        "cert-manager.io/inject-ca-from": "cachewarm-system/cachewarm-webhook"}
    assert ("Secret", "cachewarm-webhook") not in rendered
    assert ("ClusterRole", "cachewarm-webhook") not in rendered
    assert rendered["Role", "cachewarm-webhook"]["rules"][0]["verbs"] == ["get"]


def test_network_policy_allows_the_api_server(helm):
    policy = helm.template("--set", "networkPolicy.enabled=true,admission=webhook")
    assert policy["NetworkPolicy", "cachewarm"]["spec"]["ingress"] == [
        {"ports": [{"port": "metrics"}, {"port": 8443}]}]


def test_unsupported_server_versions_are_rejected(helm):
    done = helm.run("template", "cachewarm", str(CHART), "--kube-version", "1.33.9")
    assert done.returncode != 0 and "1.34" in done.stderr
