{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "cachewarm.labels" -}}
app.kubernetes.io/name: cachewarm
{{- end }}

{{- define "cachewarm.ownLabels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Call with (dict "root" $ "image" .Values.operator.image) */}}
{{- define "cachewarm.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* User names of the two identities, for CEL. */}}
{{- define "cachewarm.operatorUser" -}}
'system:serviceaccount:{{ .Release.Namespace }}:cachewarm-operator'
{{- end }}

{{- define "cachewarm.agentUser" -}}
'system:serviceaccount:{{ .Release.Namespace }}:cachewarm-agent'
{{- end }}

{{/* Call with (dict "root" $ "monitor" .Values.metrics.podMonitor). A pod that a monitor scrapes has no
prometheus.io annotations, because a Prometheus that follows both would scrape it twice. */}}
{{- define "cachewarm.podAnnotations" -}}
checksum/config: {{ include (print .root.Template.BasePath "/config.yaml") .root | sha256sum }}
{{- if and .root.Values.metrics.annotations (not .monitor.enabled) }}
prometheus.io/scrape: "true"
prometheus.io/port: "8080"
prometheus.io/path: /metrics
{{- end }}
{{- end }}

{{- define "cachewarm.probes" -}}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* Where the operator and what runs its image may be scheduled. */}}
{{- define "cachewarm.placement" -}}
{{- with .Values.operator.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.operator.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.operator.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{/* By what new pods are given their cache: policy or webhook. */}}
{{- define "cachewarm.admission" -}}
{{- if ne .Values.admission "auto" -}}
{{ .Values.admission }}
{{- else if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version -}}
policy
{{- else -}}
webhook
{{- end -}}
{{- end -}}
