#!/usr/bin/env bash
# Manages the proxy container. `scripts/proxy.sh help` lists the commands.
set -euo pipefail
CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly logs=/var/log/nginx certificate=/etc/nginx/tls/fullchain.pem

usage() {
  cat <<'END'
Usage: scripts/proxy.sh <command> [options]

  status              show the status of the container
  logs [lines|all]    show the last lines of the container log (default 50); all follows the whole log
  access-log [lines]  show the last lines of the access log (default 50)
  error-log [lines]   show the last lines of the error log (default 50)
  test                check the configuration
  reload              apply the configuration without dropping connections
  restart             check the configuration and restart the container; drops connections
  health              request /health through the proxy
  stats               show resource usage
  connections         show the number of active connections on port 8080
  top                 show resource usage every 2 seconds; Ctrl+C exits
  ssl-info            show the validity, subject and issuer of the certificate (production only)
  ssl-test [domain]   test a TLS connection (default localhost); requires OpenSSL on this machine
  exec <command>      run a shell command in the container
  help                show this help

The container is that of the Compose service proxy, or the one named by PROXY_CONTAINER.
END
}

# shellcheck source=scripts/lines.sh
. scripts/lines.sh

need() { command -v "$1" >/dev/null || die "$1 is required but not installed"; }

# Finds the container by the labels that every version of Compose sets, so that Compose need not be installed.
find_container() {
  need docker
  local project=${COMPOSE_PROJECT_NAME:-} found
  if [ -n "${PROXY_CONTAINER:-}" ]; then
    container=$PROXY_CONTAINER
  else
    if [ -z "$project" ] && [ -r .env ]; then
      project=$(sed -n 's/^COMPOSE_PROJECT_NAME=//p' .env | tail -n 1 | tr -d \"\')
    fi
    found=$(docker ps --quiet --filter label=com.docker.compose.service=proxy \
      --filter label=com.docker.compose.oneoff=False \
      --filter "label=com.docker.compose.project=${project:-fairlead}") || die "Docker does not respond"
    container=${found%%$'\n'*}
  fi
  if [ -z "$container" ] || [ "$(docker inspect --format '{{.State.Status}}' "$container" 2>/dev/null)" != running ]; then
    die "the proxy container is not running: start it with docker compose up -d proxy"
  fi
}

# published PORT prints the host address of a port of the container, or nothing.
published() {
  local address
  address=$(docker port "$container" "$1/tcp" 2>/dev/null | head -n 1) || true
  case $address in
    0.0.0.0:* | 127.0.0.1:* | '[::]:'* | :::*) echo "localhost:${address##*:}" ;;
    *) echo "$address" ;;
  esac
}
in_production() { [ -n "$(published 443)" ]; }

# unread succeeds if the last command was ended by SIGPIPE, because its reader, such as head or a pager, had quit.
unread() { [ $? -eq 141 ]; }

lines() { [[ $1 =~ ^[1-9][0-9]*$ ]] || wrong_usage "invalid number of lines: $1"; }

do_status() {
  info "the proxy container is running"
  docker ps --filter "id=$(docker inspect --format '{{.Id}}' "$container")" --format 'table {{.Names}}\t{{.Image}}\t{{.Status}}\t{{.Ports}}'
}

do_logs() {
  if [ "${1:-}" = all ]; then
    info "following the whole log; Ctrl+C exits"
    exec docker logs --follow "$container"
  fi
  lines "${1:-50}"
  docker logs --tail "${1:-50}" "$container" || unread || die "cannot read the logs of the proxy container"
}

tail_of() {
  lines "$2"
  docker exec "$container" tail -n "$2" "$logs/$1" || unread || die "cannot read $logs/$1"
}

do_test() {
  docker exec "$container" nginx -t || die "the configuration is invalid; the proxy keeps running with the previous one"
  info "the configuration is valid"
}

do_reload() {
  do_test
  docker exec "$container" nginx -s reload || die "cannot reload the proxy"
  info "reloaded; open connections were kept"
}

do_restart() {
  do_test
  info "restarting; this drops connections"
  docker restart "$container" >/dev/null || die "cannot restart the container"
  local try
  for ((try = 0; try < 50; try++)); do
    # Any answer will do: checking the server behind the proxy is the job of health.
    if docker exec "$container" curl -s -o /dev/null http://127.0.0.1:8080/health 2>/dev/null; then
      info "restarted"
      return
    fi
    sleep 0.2
  done
  die "the proxy does not respond after the restart: run docker logs $container"
}

do_health() {
  need curl
  local url report=error status
  if in_production; then
    url=https://$(published 443)/health
    report=warn
  else
    url=http://$(published 8080)
    [ "$url" != http:// ] || die "the proxy publishes neither port 8080 nor port 443"
    url+=/health
  fi
  # The certificate is for the domain, not for localhost; ssl-test verifies it.
  status=$(curl --silent --insecure --noproxy '*' --max-time 10 --output /dev/null --write-out '%{http_code}' "$url") || true
  case $status in
    200) info "$url: HTTP 200, pass"; return ;;
    000) "$report" "cannot reach $url" ;;
    *) "$report" "$url: HTTP $status" ;;
  esac
  [ "$report" = warn ]
}

do_stats() { docker stats --no-stream "$container" || die "cannot read the resource usage of the proxy"; }

# Measuring takes Docker about 2 seconds, so the pause runs at the same time.
do_top() {
  trap 'exit 0' INT
  while true; do
    sleep 2 &
    usage_now=$(do_stats)
    if [ -t 1 ]; then printf '\e[H\e[2J'; fi
    printf '%s\n' "$usage_now"
    wait $!
  done
}

# Fields 2 and 3 are the local and the remote address, with the port in hexadecimal (8080 is 1F90); state 01 is ESTABLISHED.
do_connections() {
  local count
  count=$(docker exec "$container" sh -c 'cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || true' |
    awk '$4 == "01" && ($2 ~ /:1F90$/ || $3 ~ /:1F90$/) { n++ } END { print n + 0 }')
  info "active connections on port 8080: $count"
}

do_ssl_info() {
  if ! in_production; then
    warn "there is no certificate in development mode"
    return
  fi
  docker exec "$container" openssl x509 -in "$certificate" -noout -dates -subject -issuer || die "cannot read $certificate"
}

do_ssl_test() {
  need openssl
  local domain=${1:-localhost} address answer
  address=$domain:443
  if [ "$domain" = localhost ]; then
    if ! in_production; then
      warn "there is no TLS in development mode; to test another server, name its domain"
      return
    fi
    address=$(published 443)
  fi
  if ! answer=$(timeout 10 openssl s_client -brief -connect "$address" -servername "$domain" -verify_hostname "$domain" </dev/null 2>&1); then
    printf '%s\n' "$answer"
    die "cannot establish a TLS connection to $address"
  fi
  printf '%s\n' "$answer"
  case $answer in
    *"Verification: OK"*) info "connected to $address with TLS; the certificate is valid for $domain" ;;
    *) warn "connected to $address with TLS, but this machine does not trust the certificate for $domain" ;;
  esac
}

do_exec() {
  [ $# -gt 0 ] || wrong_usage "missing argument <command>"
  local terminal=()
  if [ -t 0 ] && [ -t 1 ]; then terminal=(--tty); fi
  exec docker exec --interactive "${terminal[@]}" "$container" sh -c "$*"
}

command=${1:-}
shift || true
case $command in
  help | --help | -h) usage ;;
  '') usage >&2; exit 2 ;;
  status | logs | test | reload | restart | health | stats | connections | top | ssl-info | ssl-test | exec)
    find_container
    "do_${command//-/_}" "$@"
    ;;
  access-log | error-log)
    find_container
    tail_of "${command/-/.}" "${1:-50}"
    ;;
  *) wrong_usage "unknown command: $command" ;;
esac
