#!/bin/sh
# Selects the configuration according to the environment and then executes nginx. A loop beside it loads changed
# certificates and rotates the logs.
set -eu

logs=/var/log/nginx
rotate_at=10485760
keep=3
every=5

say() { echo "proxy: $*" >&2; }

# choose VARIABLE VALUE PART makes PART-VALUE.conf the configuration of PART.
choose() {
  [ -e "/etc/nginx/$3-$2.conf" ] || { say "unknown value $1=$2: see docs/reverse-proxies.md"; exit 1; }
  ln -sfn "/etc/nginx/$3-$2.conf" "/run/nginx/chosen/$3.conf"
}

# Docker hides the address of some callers, such as those over IPv6: they appear to come from its gateway, a private
# address that says nothing about them. The kernel writes it in hexadecimal, last byte first.
deny_gateway() {
  while read -r _ destination gateway _; do
    [ "$destination" = 00000000 ] || continue
    first=${gateway#??????} second=${gateway#????} third=${gateway#??}
    printf 'deny %d.%d.%d.%d;\n' "0x$first" "0x${second%??}" "0x${third%????}" "0x${gateway%??????}"
  done </proc/net/route >/run/nginx/chosen/gateway.conf
}

# Port 80 redirects to this name, not to whatever a caller sends as Host. Without DOMAIN, as outside of Compose, it has
# to use the Host of the request.
name_domain() {
  case ${DOMAIN:-} in
    '') domain=\$host ;;
    *[!A-Za-z0-9.-]*) say "invalid host name DOMAIN=$DOMAIN"; exit 1 ;;
    *) domain=$DOMAIN ;;
  esac
  echo "map \"\" \$domain { default $domain; }" >/run/nginx/chosen/domain.conf
}

# Replacing or rewriting a file, chmod and chown all change its inode or its ctime.
certificates() { stat -Lc '%n %i %z' /etc/nginx/tls/*.pem 2>/dev/null || true; }

# If the files cannot be loaded, nginx logs an error and keeps serving the old ones.
load_changed_certificates() {
  now=$(certificates)
  [ "$now" != "$loaded" ] || return 0
  loaded=$now
  say "the certificate files changed: loading them"
  kill -HUP $$
}

rotate() {
  log=$1
  [ "$(stat -c %s "$log" 2>/dev/null || echo 0)" -ge "$rotate_at" ] || return 0
  n=$keep
  while [ "$n" -gt 1 ]; do
    [ ! -e "$log.$((n - 1))" ] || mv -f "$log.$((n - 1))" "$log.$n"
    n=$((n - 1))
  done
  mv -f "$log" "$log.1"
  kill -USR1 $$
}

# Even in this subshell, $$ is the main process, which becomes nginx. Signals reach it even while its configuration is
# broken; nginx -s would not send them then.
watch() {
  loaded=$1
  set +e # whatever fails is retried
  while sleep "$every"; do
    load_changed_certificates
    rotate "$logs/access.log"
    rotate "$logs/error.log"
  done
}

mkdir -p /run/nginx/chosen
choose PROXY_MODE "${PROXY_MODE:-dev}" mode
choose PROXY_RATE_LIMIT "${PROXY_RATE_LIMIT:-on}" rate-limit
choose PROXY_ADMIN "${PROXY_ADMIN:-off}" admin
choose PROXY_API "${PROXY_API:-off}" api
deny_gateway
name_domain

watch "$(certificates)" &
exec nginx
