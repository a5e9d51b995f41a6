{{/* The configuration of every pod. Settings of the relay alone are in its environment. */}}
{{- define "fairlead.config" -}}
{{- $v := .Values -}}
{{- range $key := list "server_url" "listen_addr" "metrics_listen_addr" "unix_socket" "trusted_proxies" "tls_cert_path" "tls_key_path" "secrets_key_file" "noise" -}}
{{- if hasKey $v.config $key }}{{ fail (printf "config.%s: the chart sets this key; see values.yaml for its name there" $key) }}{{ end -}}
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
{{- if not $v.database.postgres.host }}{{ fail "database.postgres.host: set the name of the PostgreSQL server" }}{{ end -}}
{{- if not (or $v.database.postgres.existingSecret $v.database.postgres.password) }}{{ fail "database.postgres: set existingSecret or password" }}{{ end -}}
{{- if and $v.relay.enabled (not $v.relay.serverUrl) (not $v.ingress.enabled) -}}
{{- fail "relay: without an Ingress that routes /derp to its pod, the relay needs its own name: set relay.serverUrl, or set relay.enabled to false and use relays or config.derp.urls" -}}
{{- end -}}
{{- else if $v.relay.serverUrl -}}
{{- fail "relay.serverUrl: with SQLite, the relay is part of the server and uses serverUrl; remove this value" -}}
{{- end -}}
{{- if and (include "fairlead.stunNodePort" .) (not $v.relay.stun.nodePort) }}{{ fail "relay.stun.nodePort: set a fixed port, because devices receive it in the relay map" }}{{ end -}}
{{- $names := dict -}}
{{- range $v.relays -}}
{{- if hasKey $names .name }}{{ fail (printf "relays: two of them have the name %s" .name) }}{{ end -}}
{{- $_ := set $names .name true -}}
{{- if gt (len (include "fairlead.relayName" (dict "root" $ "relay" .))) 63 }}{{ fail (printf "relays: %s: the name is too long, because Kubernetes allows only 63 characters together with that of the release; set fullnameOverride" .name) }}{{ end -}}
{{- $type := dig "service" "type" "LoadBalancer" . -}}
{{- if and (eq $type "ClusterIP") (not $v.ingress.enabled) }}{{ fail (printf "relays: %s: with service.type ClusterIP, devices reach the relay through an Ingress: set ingress.enabled, or another type" .name) }}{{ end -}}
{{- if eq $type "NodePort" -}}
{{- if not (dig "service" "nodePort" "" .) }}{{ fail (printf "relays: %s: set service.nodePort, because devices use the port in its url" .name) }}{{ end -}}
{{- if and (dig "stun" true .) (not (dig "service" "stunNodePort" "" .)) }}{{ fail (printf "relays: %s: set service.stunNodePort, because devices receive it in the relay map, or stun: false" .name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and $v.console.enabled $v.console.ingress.enabled (not $v.console.ingress.host) }}{{ fail "console.ingress.host: set the host name of the console" }}{{ end -}}
{{- if and $v.ingress.enabled $v.tls.existingSecret }}{{ fail "ingress.enabled and tls.existingSecret: set only one, because either the Ingress or the pods terminate TLS" }}{{ end -}}
{{- end -}}
