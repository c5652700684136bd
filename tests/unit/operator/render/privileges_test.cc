// SPDX-License-Identifier: Apache-2.0
#include "operator/render/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "operator/render/job.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Yaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

// Template of a workload with some privileges.
constexpr char kTemplate[] = R"(
metadata: {labels: {app: llama}}
spec:
  serviceAccountName: llama
  securityContext: {runAsUser: 1000}
  containers:
  - name: server
    image: llama:1
    securityContext: {allowPrivilegeEscalation: false}
    env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
    envFrom: [{secretRef: {name: settings}}]
    readinessProbe: {httpGet: {port: 8000}}
    volumeMounts:
    - {name: models, mountPath: /models, subPath: llama, readOnly: true}
    - {name: tmp, mountPath: /tmp}
  volumes:
  - {name: models, hostPath: {path: /srv}}
  - {name: tmp, emptyDir: {}}
  - {name: spare, hostPath: {path: /spare}}
)";

struct Case {
  const char* name;
  const char* patch;
  const char* message;  // part of the error; "": allowed
};

class Privileges : public testing::TestWithParam<Case> {};

TEST_P(Privileges, OverridesGainNoPrivilege) {
  const Json patch = Yaml(GetParam().patch);
  const auto merged = WithOverrides(Yaml(kTemplate), &patch, "server");
  if (GetParam().message[0] == '\0') {
    EXPECT_TRUE(merged.ok()) << merged.status();
    return;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(merged.status())) << merged.status();
  EXPECT_THAT(Message(merged.status()), testing::StartsWith("compile.overrides: "));
  EXPECT_THAT(Message(merged.status()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    MayNot, Privileges,
    testing::Values(
        Case{"host_pid", "{spec: {hostPID: true}}", "spec.hostPID"},
        Case{"host_ipc", "{spec: {hostIPC: true}}", "spec.hostIPC"},
        Case{"host_network", "{spec: {hostNetwork: true}}", "spec.hostNetwork"},
        Case{"host_users", "{spec: {hostUsers: true}}", "spec.hostUsers"},
        Case{"account", "{spec: {serviceAccountName: admin}}", "spec.serviceAccountName"},
        Case{"old_account", "{spec: {serviceAccount: admin}}", "spec.serviceAccount"},
        Case{"token", "{spec: {automountServiceAccountToken: true}}",
             "spec.automountServiceAccountToken"},
        Case{"runtime", "{spec: {runtimeClassName: privileged}}", "spec.runtimeClassName"},
        Case{"pull_secret", "{spec: {imagePullSecrets: [{name: other}]}}", "spec.imagePullSecrets"},
        Case{"groups", "{spec: {securityContext: {fsGroup: 0}}}", "spec.securityContext"},
        Case{"whole_spec",
             "{spec: {$patch: replace, containers: [{name: server, image: 'llama:1', "
             "securityContext: {runAsUser: 1000}}]}}",
             "must not differ"},
        Case{"privileged",
             "{spec: {containers: [{name: server, securityContext: {privileged: true}}]}}",
             "securityContext"},
        Case{"context_removed", "{spec: {containers: [{name: server, securityContext: null}]}}",
             "securityContext"},
        Case{"new_container_without_context", "{spec: {containers: [{name: new, image: i}]}}",
             "container \"new\": securityContext"},
        Case{"new_init_container_with_more",
             "{spec: {initContainers: [{name: new, image: i, securityContext: {privileged: "
             "true}}]}}",
             "container \"new\": securityContext"},
        Case{"host_path", "{spec: {volumes: [{name: root, hostPath: {path: /}}]}}",
             "spec.volumes: \"root\""},
        Case{"another_host_path", "{spec: {volumes: [{name: models, hostPath: {path: /}}]}}",
             "spec.volumes: \"models\""},
        Case{"harmless_and_not", "{spec: {volumes: [{name: tmp, hostPath: {path: /}}]}}",
             "spec.volumes: \"tmp\""},
        Case{"claim",
             "{spec: {volumes: [{name: c, persistentVolumeClaim: {claimName: c, readOnly: "
             "true}}]}}",
             "spec.volumes: \"c\""},
        Case{"secret_volume", "{spec: {volumes: [{name: s, secret: {secretName: other}}]}}",
             "spec.volumes: \"s\""},
        Case{"projected_token",
             "{spec: {volumes: [{name: p, projected: {sources: [{serviceAccountToken: {path: "
             "t}}]}}]}}",
             "spec.volumes: \"p\""},
        Case{"writable_mount",
             "{spec: {containers: [{name: server, volumeMounts: [{mountPath: /models, readOnly: "
             "false}]}]}}",
             "volume \"models\""},
        Case{"wider_mount",
             "{spec: {containers: [{name: server, volumeMounts: [{name: models, mountPath: /all, "
             "readOnly: true}]}]}}",
             "volume \"models\""},
        Case{"spare_mount",
             "{spec: {containers: [{name: server, volumeMounts: [{name: spare, mountPath: /s}]}]}}",
             "volume \"spare\""},
        Case{"block_device",
             "{spec: {containers: [{name: server, volumeDevices: [{name: spare, devicePath: "
             "/dev/x}]}]}}",
             "volumeDevices"},
        Case{"other_secret",
             "{spec: {containers: [{name: server, env: [{name: X, valueFrom: {secretKeyRef: "
             "{name: other, key: k}}}]}]}}",
             "references a Secret"},
        Case{"other_key",
             "{spec: {containers: [{name: server, env: [{name: X, valueFrom: {secretKeyRef: "
             "{name: hub, key: k}}}]}]}}",
             "references a Secret"},
        Case{"all_of_a_secret",
             "{spec: {containers: [{name: server, envFrom: [{secretRef: {name: hub}}]}]}}",
             "references a Secret"},
        Case{"probe_elsewhere",
             "{spec: {containers: [{name: server, readinessProbe: {httpGet: {host: "
             "169.254.169.254}}}]}}",
             "host of a probe"},
        Case{"hook_elsewhere",
             "{spec: {containers: [{name: server, lifecycle: {preStop: {tcpSocket: {host: "
             "10.0.0.1, port: 1}}}}]}}",
             "host of a probe"},
        Case{"our_label", "{metadata: {labels: {cachewarm.io/inject: 'true'}}}",
             "cachewarm.io/inject"},
        Case{"our_annotation", "{metadata: {annotations: {cachewarm.io/warmup: x}}}",
             "cachewarm.io/warmup"},
        Case{"no_apparmor",
             "{metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/server: "
             "unconfined}}}",
             "apparmor"}),
    [](const auto& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    May, Privileges,
    testing::Values(
        Case{"command", "{spec: {containers: [{name: server, command: [sh], args: ['-c', x]}]}}",
             ""},
        Case{"variable",
             "{spec: {containers: [{name: server, env: [{name: TOKEN, value: none, valueFrom: "
             "null}]}]}}",
             ""},
        Case{"the_same_secret_elsewhere",
             "{spec: {containers: [{name: server, env: [{name: T, valueFrom: {secretKeyRef: "
             "{name: hub, key: token}}}]}]}}",
             ""},
        Case{"scratch",
             "{spec: {volumes: [{name: s, emptyDir: {}}], containers: [{name: server, "
             "volumeMounts: [{name: s, mountPath: /s}]}]}}",
             ""},
        Case{"emptyDir_for_host_path",
             "{spec: {volumes: [{name: models, hostPath: null, emptyDir: {}}], containers: [{name: "
             "server, volumeMounts: [{mountPath: /models, readOnly: false, subPath: null}]}]}}",
             ""},
        Case{"same_volume_at_another_place",
             "{spec: {containers: [{name: server, volumeMounts: [{name: models, mountPath: "
             "/again, subPath: llama, readOnly: true}]}]}}",
             ""},
        Case{"a_container_like_the_first",
             "{spec: {containers: [{name: new, image: i, securityContext: "
             "{allowPrivilegeEscalation: false}}]}}",
             ""},
        Case{"probe",
             "{spec: {containers: [{name: server, readinessProbe: {httpGet: {path: /ready}}}]}}",
             ""},
        Case{"place", "{spec: {nodeSelector: {a: b}, tolerations: [{operator: Exists}]}}", ""},
        Case{"note", "{metadata: {annotations: {sidecar.istio.io/inject: 'false'}}}", ""}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace cachewarm::render
