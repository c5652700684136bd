# SPDX-License-Identifier: Apache-2.0
"""The files that a node's containerd, CNI and kubelet read. Written before every start of the
node."""

import json
from collections.abc import Sequence
from pathlib import Path

from .. import settings as names
from ..settings import ClusterError, Settings

# In-node paths that are another directory on every node (under NODE/disk).
NODE_PATHS = (
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/cachewarm",
    "/var/lib/cni",
    "/run/containerd",
    "/run/netns",
    "/var/log/pods",
    "/var/log/containers",
    "/etc/cni/net.d",
    "/etc/containerd",
    "/etc/cachewarm",
    "/etc/cachewarm-test",
)
# Of these the content is of one boot only.
VOLATILE_PATHS = ("/run/containerd", "/run/netns")


def write(settings: Settings, name: str, taints: Sequence[str] = ()) -> None:
    node = settings.node(name)
    index = names.node_index(name)
    disk = node / "disk"
    for path in NODE_PATHS:
        (disk / path[1:]).mkdir(parents=True, exist_ok=True)
    (node / "hosts").write_text(f"127.0.0.1 localhost\n{names.node_address(index)} {name}\n")
    (node / "resolv.conf").write_text("")
    (disk / "etc/containerd/config.toml").write_text(_containerd(settings))
    (disk / "etc/cni/net.d/10-bridge.conflist").write_text(json.dumps(_cni(index)))
    (node / "kubelet.yaml").write_text(json.dumps(_kubelet(settings, name, taints), indent=1))
    _registry_hosts(disk / "etc/containerd/certs.d" / names.REGISTRY_NAME)


def _containerd(settings: Settings) -> str:
    cni = settings.debs / "containernetworking-plugins/usr/lib/cni"
    # restrict_oom_score_adj: machines without CAP_SYS_RESOURCE cannot lower the score, and runc
    # then dies with "can't get final child's PID from pipe: EOF".
    return f"""version = 3
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing"]
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["{cni}"]
  conf_dir = "/etc/cni/net.d"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = false
"""


def _cni(index: int) -> dict:
    # isDefaultGateway adds the default route; naming it under ipam too fails with "file exists".
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isDefaultGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": names.pod_subnet(index)}]]},
    }
    return {"cniVersion": "1.0.0", "name": "cachewarm-test", "plugins": [bridge]}


def _taint(text: str) -> dict:
    key, found, effect = text.rpartition(":")
    if not found:
        raise ClusterError(f"taint {text!r}: expected KEY:EFFECT")
    return {"key": key, "effect": effect}


def _kubelet(settings: Settings, name: str, taints: Sequence[str]) -> dict:
    return {
        "registerWithTaints": [_taint(text) for text in taints],
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{settings.cgroup}/{name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{settings.pki}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "resolvConf": "/etc/resolv.conf",
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeLeaseDurationSeconds": 12,
        "nodeStatusUpdateFrequency": "5s",
        "maxPods": 110,
        "registryPullQPS": 0,
        **_pull_policy(settings),
    }


def _pull_policy(settings: Settings) -> dict:
    """Else an image pulled from the registry makes the imported one of the same content unusable.
    Older kubelets do not verify, and end when the setting is false."""
    if settings.kubernetes != "1.36":
        return {}
    return {"imagePullCredentialsVerificationPolicy": "NeverVerify"}


def _registry_hosts(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    server = f"http://{names.BRIDGE_ADDRESS}:{names.REGISTRY_PROXY_PORT}"
    (directory / "hosts.toml").write_text(
        f'server = "{server}"\n[host."{server}"]\n  capabilities = ["pull", "resolve"]\n'
    )
