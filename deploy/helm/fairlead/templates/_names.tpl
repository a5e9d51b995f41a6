{{- define "fairlead.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "fairlead.selector" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "fairlead.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{/* The component whose pod runs the relay. */}}
{{- define "fairlead.relayComponent" -}}
{{- eq .Values.database.type "sqlite" | ternary "server" "relay" -}}
{{- end -}}

{{/* Not empty if the relay has its own pod. */}}
{{- define "fairlead.relayApart" -}}
{{- if and .Values.relay.enabled (eq .Values.database.type "postgres") }}yes{{ end -}}
{{- end -}}

{{/* The type of the relay's Service. */}}
{{- define "fairlead.relayServiceType" -}}
{{- eq .Values.database.type "sqlite" | ternary .Values.service.type .Values.relay.service.type -}}
{{- end -}}

{{/* Not empty if devices reach STUN through a node port. */}}
{{- define "fairlead.stunNodePort" -}}
{{- if and .Values.relay.enabled (ne (include "fairlead.relayServiceType" .) "LoadBalancer") (eq .Values.relay.stun.type "NodePort") }}yes{{ end -}}
{{- end -}}

{{/* The name of one of .Values.relays: call with dict "root" $ "relay" RELAY. */}}
{{- define "fairlead.relayName" -}}
{{- printf "%s-relay-%s" (include "fairlead.fullname" .root) .relay.name -}}
{{- end -}}

{{/* A label selector for the pods of .Values.relays. */}}
{{- define "fairlead.relaysSelector" -}}
matchLabels: {{- include "fairlead.selector" . | nindent 2 }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values:
      {{- range .Values.relays }}
      - relay-{{ .name }}
      {{- end }}
{{- end -}}

{{/* A list of addresses and networks as networks, separated by commas. */}}
{{- define "fairlead.networks" -}}
{{- $networks := list -}}
{{- range . -}}
{{- $networks = append $networks (contains "/" . | ternary . (printf "%s/%s" . (contains ":" . | ternary "128" "32"))) -}}
{{- end -}}
{{- join "," $networks -}}
{{- end -}}

{{- define "fairlead.secretsKeySecret" -}}
{{- default (printf "%s-secrets-key" (include "fairlead.fullname" .)) .Values.secretsKey.existingSecret -}}
{{- end -}}

{{- define "fairlead.stunPort" -}}
- name: stun
  port: {{ .Values.relay.stun.port }}
  protocol: UDP
  targetPort: stun
{{- end -}}

{{- define "fairlead.httpPort" -}}
- name: http
  port: {{ empty .Values.tls.existingSecret | not | ternary 443 80 }}
  targetPort: http
  # The control protocol upgrades HTTP/1.1 connections.
  appProtocol: {{ empty .Values.tls.existingSecret | not | ternary "https" "http" }}
{{- end -}}
