{{/* The pod template of component "server" or "relay": call with dict "root" $ "component" NAME. */}}
{{- define "fairlead.pod" -}}
{{- $ := .root -}}
{{- $v := $.Values -}}
{{- $name := include "fairlead.fullname" $ -}}
{{- $component := .component -}}
{{- $isRelay := and $v.relay.enabled (eq .component (include "fairlead.relayComponent" $)) -}}
{{- $postgres := eq $v.database.type "postgres" -}}
{{- $scheme := empty $v.tls.existingSecret | not | ternary "HTTPS" "HTTP" -}}
metadata:
  labels:
    {{- include "fairlead.selector" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $v.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Restarts the pods when the configuration changes.
    checksum/config: {{ include (print $.Template.BasePath "/config.yaml") $ | sha256sum }}
    {{- with $v.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  automountServiceAccountToken: false
  # For a Service named fairlead, Kubernetes would set variables such as FAIRLEAD_PORT, and the server
  # refuses to start with unknown variables.
  enableServiceLinks: false
  # Five seconds before the signal and one after it, fifteen for running requests, and a reserve.
  terminationGracePeriodSeconds: 45
  {{- with $v.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- with $v.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    # Only on the first mount, so that keys that the server writes stay private to it.
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: fairlead
      image: {{ include "fairlead.image" $ | quote }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args: [serve]
      {{- with include "fairlead.env" . }}
      env: {{- . | trim | nindent 8 }}
      {{- end }}
      ports:
        - {name: http, containerPort: 8080}
        - {name: metrics, containerPort: 9090}
        {{- if $isRelay }}
        - {name: stun, containerPort: 3478, protocol: UDP}
        {{- end }}
      # The first start after an upgrade may migrate large tables.
      startupProbe:
        httpGet: {path: /version, port: http, scheme: {{ $scheme }}}
        periodSeconds: 2
        failureThreshold: 450
      # Not /health, which fails on all replicas while the database is down: devices that reconnect
      # still get their map then. Fails fast, because /ready fails only when devices should go elsewhere.
      readinessProbe:
        httpGet: {path: /ready, port: http, scheme: {{ $scheme }}}
        periodSeconds: 3
        timeoutSeconds: 3
        failureThreshold: 2
      # Not /health, which fails while the database is down: a restart would not bring it back,
      # and would disconnect the devices that are still being served.
      livenessProbe:
        httpGet: {path: /version, port: http, scheme: {{ $scheme }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      lifecycle:
        # Leaves time for everyone to learn that this pod accepts no new connections.
        preStop: {sleep: {seconds: 5}}
      resources: {{- toYaml $v.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: config, mountPath: /etc/fairlead, readOnly: true}
        - {name: data, mountPath: /var/lib/fairlead}
        - {name: run, mountPath: /run/fairlead}
        - {name: tmp, mountPath: /tmp}
        {{- with $v.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: config
      projected:
        defaultMode: 0440
        sources:
          - secret: {name: {{ $name }}-config}
          {{- if $postgres }}
          {{- with $v.database.postgres.existingSecret }}
          - secret:
              name: {{ . }}
              items: [{key: {{ $v.database.postgres.existingSecretKey | quote }}, path: database-password}]
          {{- end }}
          - secret:
              name: {{ include "fairlead.secretsKeySecret" $ }}
              items: [{key: {{ $v.secretsKey.existingSecretKey | quote }}, path: secrets.key}]
          {{- end }}
          {{- with $v.tls.existingSecret }}
          - secret:
              name: {{ . }}
              items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
          {{- end }}
    - name: data
      {{- if $postgres }}
      emptyDir: {sizeLimit: 16Mi} # for the relay's key, which may change
      {{- else }}
      persistentVolumeClaim: {claimName: {{ default (printf "%s-data" $name) $v.database.sqlite.existingClaim }}}
      {{- end }}
    - name: run
      emptyDir: {medium: Memory, sizeLimit: 1Mi}
    - name: tmp
      emptyDir: {sizeLimit: 256Mi}
    {{- with $v.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- if or $v.topologySpreadConstraints $postgres }}
  topologySpreadConstraints:
    {{- with $v.topologySpreadConstraints }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - topologyKey: {{ $key }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "fairlead.selector" $ | nindent 10 }}
          app.kubernetes.io/component: {{ $component }}
    {{- end }}
    {{- end }}
  {{- end }}
  {{- with $v.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "fairlead.env" -}}
{{- $v := .root.Values -}}
{{- if eq $v.database.type "postgres" }}
- {name: FAIRLEAD_DATABASE_POSTGRES_PASS_FILE, value: /etc/fairlead/database-password}
{{- end }}
{{- if eq .component "relay" }}
- {name: FAIRLEAD_DERP_SERVER_ENABLED, value: "true"}
{{- with $v.relay.serverUrl }}
- {name: FAIRLEAD_SERVER_URL, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
