# SPDX-License-Identifier: Apache-2.0
"""Compares the chart, rendered by real helm, with manifests/install.yaml."""
import copy
import json

import pytest
import yaml

from conftest import CHART

OWN_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version")


def plain(thing):
    """Drops fields that only helm adds, and parses the configuration."""
    thing = copy.deepcopy(thing)
    for label in OWN_LABELS:
        thing["metadata"].get("labels", {}).pop(label, None)
    if thing["kind"] in ("Deployment", "DaemonSet"):
        thing["spec"]["template"]["metadata"]["annotations"].pop("checksum/config", None)
    if thing["kind"] == "ConfigMap":
        thing["data"] = {name: yaml.safe_load(text) for name, text in thing["data"].items()}
    return thing


def is_hook(thing):
    return "helm.sh/hook" in thing["metadata"].get("annotations", {})


def config_of(rendered):
    return yaml.safe_load(rendered["ConfigMap", "cachewarm"]["data"]["config.yaml"])


def pod_of(rendered, kind, name):
    spec = rendered[kind, name]["spec"]["template"]["spec"]
    return spec, spec["containers"][0]


def test_lint_finds_no_problem(helm):
    done = helm.run("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout + done.stderr


def test_default_values_render_install_yaml(installed, rendered):
    # helm creates the namespace (--create-namespace), and only helm has hooks.
    wanted = {key: plain(thing) for key, thing in installed.items() if key[0] != "Namespace"}
    assert {key for key, thing in rendered.items() if not is_hook(thing)} == set(wanted)
    for key, thing in wanted.items():
        assert plain(rendered[key]) == thing, key


def test_every_object_has_the_chart_label(rendered):
    for (kind, name), thing in rendered.items():
        if kind != "CustomResourceDefinition":
            assert thing["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm", name


def test_namespace_is_used_everywhere(helm):
    rendered = helm.template(namespace="elsewhere")
    for key, thing in rendered.items():
        assert "cachewarm-system" not in yaml.safe_dump(thing), key
    text = yaml.safe_dump(list(rendered.values()))
    assert "system:serviceaccount:elsewhere:cachewarm-operator" in text
    policy = rendered["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    names = policy["matchConstraints"]["namespaceSelector"]["matchExpressions"][1]["values"]
    assert names == ["kube-system", "elsewhere"]


def test_root_is_used_in_policy_mount_and_configuration(helm):
    rendered = helm.template("--set", "root=/mnt/nvme/warm,store=oci://r.example.com/cw")
    for key, thing in rendered.items():
        if key[0] != "CustomResourceDefinition":
            assert "/var/lib/cachewarm" not in yaml.safe_dump(thing), key
    assert config_of(rendered)["root"] == "/mnt/nvme/warm"
    spec, container = pod_of(rendered, "DaemonSet", "cachewarm-agent")
    assert spec["volumes"][0]["hostPath"]["path"] == "/mnt/nvme/warm"
    assert container["volumeMounts"][0]["mountPath"] == "/mnt/nvme/warm"
    policy = rendered["MutatingAdmissionPolicy", "cachewarm.io"]["spec"]
    free = next(c for c in policy["matchConditions"] if c["name"] == "free")["expression"]
    assert "'/mnt/nvme/warm/'" in free
    mutation = policy["mutations"][0]["applyConfiguration"]["expression"]
    assert '"/mnt/nvme/warm/" + request.namespace' in mutation


def test_registry_and_limits_are_in_the_configuration(helm):
    rendered = helm.template(
        "--set", "store=oci://r.local:5000/cw,byteLimit=50000000000,logLevel=debug",
        "--set", "reserve.bytesPercent=20,reserve.inodesPercent=0",
        "--set", "scrub.intervalSeconds=0,redis.endpoint=true",
        "--set", "registry.insecure={r.local:5000,s.local}",
        "--set", "registry.authFile=/etc/cachewarm-registry/config.json",
        "--set", "registry.clientCertificateFile=/etc/cachewarm-registry/tls.crt",
        "--set", "registry.clientKeyFile=/etc/cachewarm-registry/tls.key",
        "--set", "registry.mirrors={m.local:5000/cw,10.0.0.7}",
        "--set", "registry.proxy=http://p.local:3128",
        "--set", "registry.maxConnections=8,registry.bytesPerSecond=50000000",
        "--set", "limits.files=1000,limits.bytes=137438953472",
        "--set", "builders.jobsMax=3,fetch.nodesMax=8,freshNodes.tainted=true",
        "--set", "engineLogs.enabled=true,harvest.intervalMinutes=5",
        "--set", "agent.nodeFacts=/etc/cachewarm-node/facts.yaml")
    assert config_of(rendered) == {
        "store": "oci://r.local:5000/cw", "root": "/var/lib/cachewarm",
        "byteLimit": 50000000000, "reserve": {"bytesPercent": 20, "inodesPercent": 0},
        "scrub": {"intervalSeconds": 0}, "logLevel": "debug",
        "redis": {"endpoint": True},
        "builders": {"jobsMax": 3}, "fetch": {"nodesMax": 8},
        "freshNodes": {"tainted": True}, "engineLogs": {"enabled": True},
        "harvest": {"intervalMinutes": 5},
        "registry": {"insecure": ["r.local:5000", "s.local"],
                     "clientCertificateFile": "/etc/cachewarm-registry/tls.crt",
                     "clientKeyFile": "/etc/cachewarm-registry/tls.key",
                     "authFile": "/etc/cachewarm-registry/config.json",
                     "mirrors": ["m.local:5000/cw", "10.0.0.7"], "proxy": "http://p.local:3128",
                     "maxConnections": 8, "bytesPerSecond": 50000000},
        "limits": {"files": 1000, "bytes": 137438953472},
        "nodeFacts": "/etc/cachewarm-node/facts.yaml"}


def test_agents_read_the_salt_that_the_operator_makes(rendered):
    spec, container = pod_of(rendered, "DaemonSet", "cachewarm-agent")
    volume = next(v for v in spec["volumes"] if v["name"] == "engine-salt")
    assert volume["secret"] == {"secretName": "cachewarm-engine-salt", "optional": True}
    assert rendered["Secret", "cachewarm-engine-salt"]
    mount = next(m for m in container["volumeMounts"] if m["name"] == "engine-salt")
    assert f"--factor-salt-file={mount['mountPath']}/salt" in container["args"]


def test_no_pod_mounts_the_salt_of_the_operator(rendered):
    """A kubelet may read all items of a Secret that one of its pods mounts."""
    assert rendered["Secret", "cachewarm-salt"]
    for (kind, name), thing in rendered.items():
        if kind in ("Deployment", "DaemonSet", "CronJob"):
            assert '"cachewarm-salt"' not in json.dumps(thing), (kind, name)


def test_signature_keys_are_mounted_in_agents(helm, rendered):
    assert "signature" not in config_of(rendered)
    signed = helm.template(
        "--set", "signature.publicKeyFile=/etc/cachewarm-signature/cosign.pub",
        "--set", "signature.privateKeyFile=/etc/cachewarm-signature/key.pem",
        "--set", "signature.secretName=keys")
    assert config_of(signed)["signature"] == {
        "publicKeyFile": "/etc/cachewarm-signature/cosign.pub",
        "privateKeyFile": "/etc/cachewarm-signature/key.pem"}
    spec, container = pod_of(signed, "DaemonSet", "cachewarm-agent")
    volume = next(v for v in spec["volumes"] if v["name"] == "signature")
    assert volume["secret"] == {"secretName": "keys", "optional": True}
    mount = next(m for m in container["volumeMounts"] if m["name"] == "signature")
    assert (mount["mountPath"], mount["readOnly"]) == ("/etc/cachewarm-signature", True)


def test_changed_configuration_restarts_operator_and_agents(helm, rendered):
    changed = helm.template("--set", "logLevel=debug")
    for key in (("Deployment", "cachewarm-operator"), ("DaemonSet", "cachewarm-agent")):
        before, after = (things[key]["spec"]["template"]["metadata"]["annotations"]
                         for things in (rendered, changed))
        assert before["checksum/config"] != after["checksum/config"]


def test_images_and_placement_are_values(helm):
    rendered = helm.template(
        "--set", "agent.image.repository=localhost/a,agent.image.tag=dev",
        "--set", "agent.image.pullPolicy=Never,agent.runtimeClassName=nvidia",
        "--set", "operator.image.repository=localhost/o,operator.replicas=1",
        "--set", "imagePullSecrets[0].name=pull",
        "--set-json", 'agent.tolerations=[{"operator":"Exists"}]',
        "--set-json", 'operator.tolerations=[{"key":"infra","operator":"Exists"}]')
    spec, container = pod_of(rendered, "DaemonSet", "cachewarm-agent")
    assert (container["image"], container["imagePullPolicy"]) == ("localhost/a:dev", "Never")
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    spec, container = pod_of(rendered, "Deployment", "cachewarm-operator")
    assert container["image"] == "localhost/o:0.1.0"
    assert rendered["Deployment", "cachewarm-operator"]["spec"]["replicas"] == 1
    assert spec["tolerations"] == [{"key": "infra", "operator": "Exists"}]


def test_without_builder_jobs_the_operator_may_not_write_jobs(helm, rendered):
    def verbs(objects):
        rules = objects["ClusterRole", "cachewarm-operator"]["rules"]
        return next(rule["verbs"] for rule in rules if rule["resources"] == ["jobs"])

    assert verbs(rendered) == ["list", "watch", "create", "delete"]
    assert verbs(helm.template("--set", "builders.jobsMax=0")) == ["list", "watch"]


def test_operator_may_read_logs_only_with_engine_logs(helm, rendered):
    def log_rules(objects):
        return [(name, rule["verbs"]) for (kind, name), thing in objects.items()
                if kind in ("Role", "ClusterRole")
                for rule in thing["rules"] if "pods/log" in rule["resources"]]

    assert log_rules(rendered) == []
    assert config_of(rendered)["engineLogs"] == {"enabled": False}
    allowed = helm.template("--set", "engineLogs.enabled=true")
    assert log_rules(allowed) == [("cachewarm-operator", ["get"])]


def test_builder_jobs_mount_only_listed_directories(helm):
    rendered = helm.template("--set", "builders.hostPaths={/models,/mnt/data}")
    policy = rendered["ValidatingAdmissionPolicy", "operator-jobs.cachewarm.io"]["spec"]
    (rule,) = [each["expression"] for each in policy["validations"]
               if "variables.paths" in each["expression"]]
    assert rule.endswith("|| p.startsWith('/models/') || p.startsWith('/mnt/data/'))")
    none = helm.template("--set-json", "builders.hostPaths=[]")
    policy = none["ValidatingAdmissionPolicy", "operator-jobs.cachewarm.io"]["spec"]
    (rule,) = [each["expression"] for each in policy["validations"]
               if "variables.paths" in each["expression"]]
    assert rule.endswith("p.startsWith('/var/lib/cachewarm/' + request.namespace + '/'))")


def job_rules(objects, about):
    policy = objects["ValidatingAdmissionPolicy", "operator-jobs.cachewarm.io"]["spec"]
    return [each["expression"] for each in policy["validations"] if about in each["expression"]]


def test_builder_jobs_use_no_service_account_with_rights_in_all_namespaces(rendered):
    first, second = job_rules(rendered, "variables.account")
    prefix = ("!variables.create || !authorizer.serviceAccount(request.namespace, "
              "variables.account) .group('')")
    assert first == f"{prefix}.resource('secrets').check('list').allowed()"
    assert second == f"{prefix}.resource('pods').check('create').allowed()"


def test_builder_jobs_use_only_listed_service_accounts(helm, rendered):
    listed = helm.template("--set", "builders.serviceAccounts={default,model-server}")
    (rule,) = job_rules(listed, "variables.account in")
    assert rule == "!variables.create || variables.account in ['default','model-server']"
    assert len(job_rules(listed, "authorizer.serviceAccount(")) == 2
    assert job_rules(rendered, "variables.account in") == []


def test_host_path_policy_is_optional(helm, rendered):
    key = ("ValidatingAdmissionPolicy", "host-paths.cachewarm.io")
    rules = rendered[key]["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert rules == [{"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                      "values": ["cachewarm-system"]}]
    without = helm.template("--set", "hostPathPolicy.enabled=false")
    assert key not in without
    assert ("ValidatingAdmissionPolicyBinding", "host-paths.cachewarm.io") not in without


def test_flow_control_is_optional(helm, rendered):
    kinds = ("FlowSchema", "PriorityLevelConfiguration")
    schemas = {name: thing["spec"] for (kind, name), thing in rendered.items()
               if kind == "FlowSchema"}
    levels = {name for kind, name in rendered if kind == "PriorityLevelConfiguration"}
    assert {name: spec["priorityLevelConfiguration"]["name"] for name, spec in schemas.items()} == {
        "cachewarm-lease": "leader-election", "cachewarm-operator": "cachewarm-operator",
        "cachewarm-agents": "cachewarm-agents"}
    assert levels == {"cachewarm-operator", "cachewarm-agents"}
    # A hanging webhook delays the requests for its namespace alone.
    assert schemas["cachewarm-operator"]["distinguisherMethod"] == {"type": "ByNamespace"}
    # The schema with the lower number matches first.
    assert (schemas["cachewarm-lease"]["matchingPrecedence"]
            < schemas["cachewarm-operator"]["matchingPrecedence"])
    accounts = {subject["serviceAccount"]["name"] for spec in schemas.values()
                for rule in spec["rules"] for subject in rule["subjects"]}
    assert accounts == {"cachewarm-operator", "cachewarm-release", "cachewarm-uninstall",
                        "cachewarm-agent"}
    without = helm.template("--set", "flowControl.enabled=false")
    assert not [key for key in without if key[0] in kinds]


def test_node_directory_is_optional(helm):
    rendered = helm.template("--set", "agent.nodeDirectory=")
    spec, container = pod_of(rendered, "DaemonSet", "cachewarm-agent")
    assert "node" not in [volume["name"] for volume in spec["volumes"]]
    assert "node" not in [mount["name"] for mount in container["volumeMounts"]]


def test_driver_roots_are_mounted_read_only(helm, rendered):
    spec, container = pod_of(rendered, "DaemonSet", "cachewarm-agent")
    assert not [volume for volume in spec["volumes"] if volume["name"].startswith("driver-")]
    rendered = helm.template(
        "--set-json", 'agent.driverRoots=["/run/nvidia/driver","/home/kubernetes/bin/nvidia"]')
    spec, container = pod_of(rendered, "DaemonSet", "cachewarm-agent")
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["driver-1"]["hostPath"] == {"path": "/home/kubernetes/bin/nvidia"}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts["driver-0"] == {
        "name": "driver-0", "mountPath": "/run/cachewarm-driver/0", "readOnly": True,
        "mountPropagation": "HostToContainer"}
    assert config_of(rendered)["driverRoots"] == [
        "/run/cachewarm-driver/0", "/run/cachewarm-driver/1"]


def test_release_jobs_run_like_the_operator(helm):
    rendered = helm.template(
        "--set", "operator.image.repository=localhost/o,operator.image.pullPolicy=Never",
        "--set", "operator.nodeSelector.pool=infra,imagePullSecrets[0].name=pull",
        "--set-json", 'operator.tolerations=[{"key":"infra","operator":"Exists"}]',
        "--set", "release.schedule=*/2 * * * *")
    cron = rendered["CronJob", "cachewarm-release"]["spec"]
    assert cron["schedule"] == "*/2 * * * *"
    for template in (cron["jobTemplate"]["spec"]["template"],
                     rendered["Job", "cachewarm-uninstall"]["spec"]["template"]):
        spec = template["spec"]
        assert spec["containers"][0]["image"] == "localhost/o:0.1.0"
        assert spec["containers"][0]["imagePullPolicy"] == "Never"
        assert spec["nodeSelector"]["pool"] == "infra"
        assert spec["tolerations"] == [{"key": "infra", "operator": "Exists"}]
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        assert spec["priorityClassName"] == "system-cluster-critical"


def test_uninstall_job_releases_pods_with_minimal_rights(rendered):
    hooks = {key: thing for key, thing in rendered.items() if is_hook(thing)}
    assert sorted(hooks) == [(kind, "cachewarm-uninstall") for kind in (
        "ClusterRole", "ClusterRoleBinding", "Job", "ServiceAccount")]
    for key, thing in hooks.items():
        notes = thing["metadata"]["annotations"]
        assert notes["helm.sh/hook"] == "pre-delete"
        assert (key[0] == "Job") == (int(notes["helm.sh/hook-weight"]) == 0)
    rules = hooks["ClusterRole", "cachewarm-uninstall"]["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (["pods"], None, ["get", "list", "patch"]),
        (["mutatingadmissionpolicybindings", "mutatingwebhookconfigurations"], ["cachewarm.io"],
         ["delete"])]
    container = hooks["Job", "cachewarm-uninstall"]["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["/usr/bin/cachewarm", "release", "--all", "--all-namespaces",
                                    "--remove-policy"]


def test_release_jobs_are_optional(helm):
    rendered = helm.template("--set", "release.enabled=false,uninstall.enabled=false")
    assert not [key for key in rendered
                if key[1] in ("cachewarm-release", "cachewarm-uninstall")]


def test_collection_of_the_store_is_off_by_default(rendered):
    assert not [key for key in rendered if key[1] == "cachewarm-gc"]


def test_collection_of_a_registry_has_the_credentials_and_lists_two_kinds(helm):
    rendered = helm.template(
        "--set", "gc.schedule=17 3 * * *,gc.retain=2,gc.olderThan=12h,gc.expire=30d",
        "--set", "gc.repositories={team/llama,team/qwen}",
        "--set", "store=oci://r.local:5000/cw,registry.insecure={r.local:5000}",
        "--set", "registry.caFile=/etc/cachewarm-registry/ca.crt",
        "--set", "registry.authFile=/etc/cachewarm-registry/config.json",
        "--set", "registry.clientCertificateFile=/etc/cachewarm-registry/tls.crt",
        "--set", "registry.clientKeyFile=/etc/cachewarm-registry/tls.key",
        "--set", "registry.proxy=http://p.local:3128,registry.secretName=keys",
        "--set", "operator.image.repository=localhost/o")
    assert rendered["ClusterRole", "cachewarm-gc"]["rules"] == [
        {"apiGroups": ["cachewarm.io"], "resources": ["cachewarmups", "nodecaches"],
         "verbs": ["list"]}]
    cron = rendered["CronJob", "cachewarm-gc"]["spec"]
    assert cron["schedule"] == "17 3 * * *"
    assert cron["concurrencyPolicy"] == "Forbid"
    spec = cron["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "cachewarm-gc"
    assert spec["securityContext"]["runAsNonRoot"] is True
    container = spec["containers"][0]
    assert container["image"] == "localhost/o:0.1.0"
    assert container["command"] == [
        "/usr/bin/cachewarm", "gc", "--keep-used", "--store=oci://r.local:5000/cw", "--retain=2",
        "--older-than=12h", "--expire=30d", "--repository=team/llama", "--repository=team/qwen",
        "--insecure-host=r.local:5000", "--ca-file=/etc/cachewarm-registry/ca.crt",
        "--client-certificate=/etc/cachewarm-registry/tls.crt",
        "--client-key=/etc/cachewarm-registry/tls.key",
        "--auth-file=/etc/cachewarm-registry/config.json", "--proxy=http://p.local:3128"]
    assert spec["volumes"] == [
        {"name": "registry", "secret": {"secretName": "keys", "optional": True}}]
    assert container["volumeMounts"] == [
        {"name": "registry", "mountPath": "/etc/cachewarm-registry", "readOnly": True}]


def test_collection_of_a_directory_mounts_the_root(helm):
    rendered = helm.template("--set", "gc.schedule=17 3 * * *,root=/mnt/warm",
                             "--set", "store=layout:///mnt/warm/.store")
    spec = rendered["CronJob", "cachewarm-gc"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["volumes"] == [
        {"name": "root", "hostPath": {"path": "/mnt/warm", "type": "Directory"}}]
    container = spec["containers"][0]
    assert container["volumeMounts"] == [{"name": "root", "mountPath": "/mnt/warm"}]
    assert container["command"][2:] == ["--keep-used", "--store=layout:///mnt/warm/.store",
                                        "--retain=1", "--older-than=24h"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_network_policy_allows_only_metrics(helm):
    policy = helm.template("--set", "networkPolicy.enabled=true")["NetworkPolicy", "cachewarm"]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"ports": [{"port": "metrics"}]}]


def test_quota_is_optional(helm):
    rendered = helm.template("--set", "criticalQuota.enabled=false")
    assert ("ResourceQuota", "cachewarm-critical") not in rendered


@pytest.mark.parametrize("value,named", [
    ("store=s3://bucket", "store"),
    ("store=", "store"),
    ("root=relative", "root"),
    ("root=/", "root"),
    ("root=/var/../etc", "root"),
    ("root=/var/lib/it's", "root"),
    ("byteLimit=-1", "byteLimit"),
    ("byteLimit=110%", "byteLimit"),
    ("reserve.bytesPercent=101", "bytesPercent"),
    ("scrub.intervalSeconds=59", "intervalSeconds"),
    ("scrub.interval=3600", "interval"),
    ("redis.endpoint=6379", "endpoint"),
    ("logLevel=loud", "logLevel"),
    ("operator.replicas=99", "replicas"),
    ("agent.image.pullPolicy=Sometimes", "pullPolicy"),
    ("registry.authFile=relative", "authFile"),
    ("registry.clientKeyFile=relative", "clientKeyFile"),
    ("signature.publicKeyFile=relative", "publicKeyFile"),
    ("registry.mirrors={user@m.local}", "mirrors"),
    ("registry.proxy=https://p.local", "proxy"),
    ("registry.maxConnections=1025", "maxConnections"),
    ("registry.bytesPerSecond=100", "bytesPerSecond"),
    ("limits.files=200001", "files"),
    ("limits.megabytes=1", "megabytes"),
    ("metrics.serviceMonitor.interval=soon", "interval"),
    ("metrics.podMonitor.interval=0.5m", "interval"),
    ("metrics.podMonitor.labels.release=1", "release"),
    ("metrics.monitor.enabled=true", "monitor"),
    ("release.schedule=hourly", "schedule"),
    ("gc.schedule=daily", "schedule"),
    ("gc.retain=0", "retain"),
    ("gc.olderThan=1w", "olderThan"),
    ("gc.expire=30", "expire"),
    ("gc.repositories={Team/llama}", "repositories"),
    ("uninstall.hook=false", "hook"),
    ("typo=1", "typo"),
])
def test_invalid_values_are_rejected_by_name(helm, value, named):
    done = helm.run("template", "cachewarm", str(CHART), "--set", value)
    assert done.returncode != 0
    assert named in done.stderr


def test_notes_warn_about_a_store_that_nodes_do_not_share(helm):
    def notes(*words):
        done = helm.run("install", "cachewarm", str(CHART), "--dry-run=client", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout[done.stdout.index("NOTES:"):]

    assert "store=oci://" in notes()
    assert "store=oci://" not in notes("--set", "store=oci://r.example.com/cw")
