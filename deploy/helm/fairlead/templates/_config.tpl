{{/* The configuration of every pod. Settings of the relay alone are in its environment. */}}
{{- define "fairlead.config" -}}
{{- $v := .Values -}}
{{- range $key := list "server_url" "listen_addr" "metrics_listen_addr" "unix_socket" "trusted_proxies" "tls_cert_path" "tls_key_path" "secrets_key_file" "noise" -}}
{{- if hasKey $v.config $key }}{{ fail (printf "config.%s: the chart sets this key; look for it in values.yaml" $key) }}{{ end -}}
{{- end -}}
{{- if hasKey (dig "derp" "server" dict $v.config) "enabled" }}{{ fail "config.derp.server.enabled: the chart sets this key; use relay.enabled" }}{{ end -}}
{{- $stun := $v.relay.stun.port -}}
{{- if include "fairlead.stunNodePort" . }}{{ $stun = $v.relay.stun.nodePort }}{{ end -}}
{{- $own := dict
  "server_url" $v.serverUrl
  "listen_addr" "0.0.0.0:8080"
  "metrics_listen_addr" "0.0.0.0:9090"
  "database" (dict "type" $v.database.type)
  "derp" (dict "server" (dict "enabled" (and $v.relay.enabled (eq $v.database.type "sqlite")) "stun_listen_addr" "0.0.0.0:3478" "stun_public_port" (int $stun)))
  "log" (dict "format" "json")
-}}
{{- if eq $v.database.type "postgres" -}}
{{- with $v.database.postgres -}}
{{- $_ := set $own.database "postgres" (dict "host" .host "port" (int .port) "name" .name "user" .user "ssl" .ssl) -}}
{{- end -}}
{{- $_ := set $own "secrets_key_file" "/etc/fairlead/secrets.key" -}}
{{- end -}}
{{- with $v.trustedProxies }}{{ $_ := set $own "trusted_proxies" . }}{{ end -}}
{{- if $v.tls.existingSecret -}}
{{- $_ := set $own "tls_cert_path" "/etc/fairlead/tls.crt" -}}
{{- $_ := set $own "tls_key_path" "/etc/fairlead/tls.key" -}}
{{- end -}}
{{- $given := deepCopy $v.config -}}
{{- if dig "log" "format" "" $given }}{{ $_ := unset $own "log" }}{{ end -}}
{{- mustMergeOverwrite $given $own | toYaml -}}
{{- end -}}

{{/* Checks of the values that a JSON schema cannot express. */}}
{{- define "fairlead.checkValues" -}}
{{- $v := .Values -}}
{{- if eq $v.database.type "postgres" -}}
{{- if not $v.database.postgres.host }}{{ fail "database.postgres.host: name the PostgreSQL server" }}{{ end -}}
{{- if not (or $v.database.postgres.existingSecret $v.database.postgres.password) }}{{ fail "database.postgres: set existingSecret, or password" }}{{ end -}}
{{- if and $v.relay.enabled (not $v.relay.serverUrl) (not $v.ingress.enabled) -}}
{{- fail "relay: without an Ingress that sends /derp to its pod the relay needs a name of its own: set relay.serverUrl, or switch relay.enabled off and name other relays in config.derp.urls" -}}
{{- end -}}
{{- else if $v.relay.serverUrl -}}
{{- fail "relay.serverUrl: with SQLite the relay is part of the service and answers under serverUrl" -}}
{{- end -}}
{{- if and (include "fairlead.stunNodePort" .) (not $v.relay.stun.nodePort) }}{{ fail "relay.stun.nodePort: devices are told the port of the nodes, so choose it" }}{{ end -}}
{{- if and $v.console.enabled $v.console.ingress.enabled (not $v.console.ingress.host) }}{{ fail "console.ingress.host: name the host under which people reach the console" }}{{ end -}}
{{- if and $v.ingress.enabled $v.tls.existingSecret }}{{ fail "ingress.enabled and tls.existingSecret: either the Ingress terminates TLS, or the pods do" }}{{ end -}}
{{- end -}}
