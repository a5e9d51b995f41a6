#!/usr/bin/env bats
# Tests scripts/proxy.sh with real proxy containers, in development and production, running and stopped. Needs Docker and the
# image named by PROXY_IMAGE. Needs root, to give the key to the proxy's user.

bats_require_minimum_version 1.5.0
script=$BATS_TEST_DIRNAME/../proxy.sh

setup_file() {
  export PROXY_IMAGE=${PROXY_IMAGE:-fairlead/proxy:dev}
  export NAME=fairlead-bats-$$ FILES=$BATS_FILE_TMPDIR
  unset PROXY_CONTAINER COMPOSE_PROJECT_NAME NO_COLOR
  # A stand-in for the server with everything that the script needs.
  cat >"$FILES/service.conf" <<'END'
daemon off; pid /tmp/service.pid; error_log /dev/stderr; events {}
http {
  client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
  server { listen 8080; location = /health { return 200 '{"status":"pass"}'; } }
}
END
  mkdir "$FILES/tls"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=mesh.example \
    -addext subjectAltName=DNS:localhost -keyout "$FILES/tls/privkey.pem" -out "$FILES/tls/fullchain.pem" 2>/dev/null
  chmod 644 "$FILES/tls/fullchain.pem"
  chown -R 10003:10003 "$FILES/tls"
  docker network create "$NAME" >/dev/null
  docker run --detach --name "$NAME-service" --network "$NAME" --network-alias fairlead --entrypoint nginx \
    --volume "$FILES/service.conf:/service.conf:ro" "$PROXY_IMAGE" -c /service.conf >/dev/null
  proxy dev --publish 127.0.0.1::8080 --label com.docker.compose.project="$NAME" \
    --label com.docker.compose.service=proxy --label com.docker.compose.oneoff=False
  proxy prod --publish 127.0.0.1::443 --volume "$FILES/tls:/etc/nginx/tls:ro"
  docker create --name "$NAME-stopped" "$PROXY_IMAGE" >/dev/null
}

teardown_file() {
  docker rm --force --volumes "$NAME-service" "$NAME-dev" "$NAME-prod" "$NAME-stopped" >/dev/null
  docker network rm "$NAME" >/dev/null
}

setup() { export PROXY_CONTAINER=$NAME-dev; }

# proxy MODE OPTIONS... starts a proxy and waits until it answers.
proxy() {
  local mode=$1
  shift
  docker run --detach --name "$NAME-$mode" --network "$NAME" --env PROXY_MODE="$mode" "$@" "$PROXY_IMAGE" >/dev/null
  answers "$NAME-$mode"
}

answers() {
  for _ in {1..100}; do
    docker exec "$1" curl -fs -o /dev/null http://127.0.0.1:8080/health && return
    sleep 0.1
  done
  docker logs --tail 20 "$1"
  return 1
}

in_production() { PROXY_CONTAINER=$NAME-prod; }

# workers counts the worker processes started so far.
workers() { docker exec "$NAME-dev" grep -c 'start worker process ' /var/log/nginx/error.log; }

# has TEXT checks that the output contains it.
has() {
  [[ $output == *"$1"* ]] || { printf 'no "%s" in:\n%s\n' "$1" "$output"; return 1; }
}

# said PREFIX TEXT checks that a line of the output starts with the prefix and contains the text.
said() {
  local line
  for line in "${lines[@]}"; do
    if [[ $line == "[$1] "*"$2"* ]]; then return; fi
  done
  printf 'no line "[%s] … %s" in:\n%s\n' "$1" "$2" "$output"
  return 1
}

# without TOOL prints a PATH with everything that the script uses except one tool.
without() {
  local tool
  mkdir "$BATS_TEST_TMPDIR/no-$1"
  for tool in bash env dirname sed tail head tr cat awk sleep timeout docker curl openssl; do
    [ "$tool" = "$1" ] || ln -s "$(command -v "$tool")" "$BATS_TEST_TMPDIR/no-$1/$tool"
  done
  echo "$BATS_TEST_TMPDIR/no-$1"
}

@test "status shows the container" {
  run -0 "$script" status
  said INFO "is running"
  has "$NAME-dev"
  has "Up "
}

@test "logs shows 50 lines by default" {
  docker exec "$NAME-dev" sh -c 'for i in $(seq 60); do curl -s -o /dev/null http://127.0.0.1:8080/robots.txt?$i; done'
  run -0 "$script" logs
  [ "${#lines[@]}" = 50 ]
  run -0 "$script" logs 7
  [ "${#lines[@]}" = 7 ]
}

@test "logs all follows all logs" {
  timeout 5 "$script" logs all >"$BATS_TEST_TMPDIR/all" 2>&1 &
  sleep 1
  docker exec "$NAME-dev" curl -s -o /dev/null http://127.0.0.1:8080/robots.txt?followed
  wait $! || [ $? = 124 ]
  grep -q 'start worker process' "$BATS_TEST_TMPDIR/all"
  grep -q 'robots.txt?followed' "$BATS_TEST_TMPDIR/all"
}

@test "logs refuses what is not a number of lines" {
  for lines in 0 -3 many '5;id'; do
    run -2 "$script" logs "$lines"
    said ERROR "invalid number of lines"
    run -2 "$script" access-log "$lines"
    said ERROR "invalid number of lines"
  done
}

@test "logs and access-log are no error for a reader who has enough" {
  docker exec "$NAME-dev" sh -c 'curl -s -o /dev/null "http://127.0.0.1:8080/robots.txt?[1-3000]"'
  for command in logs access-log; do
    run -0 --separate-stderr sh -c "'$script' $command 3000 | head -n 1"
    # shellcheck disable=SC2154 # bats sets it
    [[ $stderr != *ERROR* ]]
  done
}

@test "access-log shows requests" {
  docker exec "$NAME-dev" sh -c 'for i in $(seq 60); do curl -s -o /dev/null http://127.0.0.1:8080/health?$i; done'
  run -0 "$script" access-log
  [ "${#lines[@]}" = 50 ]
  has '"GET /health?60 HTTP/1.1" 200'
  run -0 "$script" access-log 2
  [ "${#lines[@]}" = 2 ]
}

@test "error-log shows errors" {
  run -0 "$script" error-log
  has "[notice]"
  run -0 "$script" error-log 1
  [ "${#lines[@]}" = 1 ]
}

@test "test accepts the configuration" {
  for PROXY_CONTAINER in "$NAME-dev" "$NAME-prod"; do
    run -0 "$script" test
    has "syntax is ok"
    said INFO "the configuration is valid"
  done
}

@test "test and reload fail while the certificate cannot be read, and the proxy goes on" {
  in_production
  chmod 000 "$FILES/tls/fullchain.pem"
  run "$script" test
  tested=$status tested_output=$output
  run "$script" reload
  reloaded=$status
  chmod 644 "$FILES/tls/fullchain.pem"
  [ "$tested" = 1 ]
  [[ $tested_output == *"cannot load certificate"* ]]
  [[ $tested_output == *"[ERROR]"* ]]
  [ "$reloaded" = 1 ]
  run -0 "$script" health
  said INFO "HTTP 200"
}

@test "reload starts new workers" {
  before=$(workers)
  run -0 "$script" reload
  said INFO "reloaded"
  for _ in {1..50}; do
    if [ "$(workers)" != "$before" ]; then break; fi
    sleep 0.1
  done
  [ "$(workers)" != "$before" ]
}

@test "restart restarts the container" {
  before=$(docker inspect --format '{{.State.StartedAt}}' "$NAME-dev")
  run -0 "$script" restart
  said INFO "restarted"
  [ "$(docker inspect --format '{{.State.StartedAt}}' "$NAME-dev")" != "$before" ]
  run -0 "$script" health
}

@test "restart refuses an invalid configuration" {
  in_production
  before=$(docker inspect --format '{{.State.StartedAt}}' "$NAME-prod")
  chmod 000 "$FILES/tls/fullchain.pem"
  run "$script" restart
  chmod 644 "$FILES/tls/fullchain.pem"
  [ "$status" = 1 ]
  said ERROR "the configuration is invalid"
  [ "$(docker inspect --format '{{.State.StartedAt}}' "$NAME-prod")" = "$before" ]
  answers "$NAME-prod"
}

@test "health passes with HTTP 200" {
  run -0 "$script" health
  said INFO "http://localhost:$(docker port "$NAME-dev" 8080/tcp | cut -d: -f2)/health: HTTP 200, pass"
  in_production
  run -0 "$script" health
  said INFO "https://localhost:$(docker port "$NAME-prod" 443/tcp | cut -d: -f2)/health: HTTP 200, pass"
}

@test "health fails in development and warns in production when there is no pass" {
  docker kill "$NAME-service"
  run "$script" health
  development=$status development_output=$output
  in_production
  run "$script" health
  docker start "$NAME-service"
  answers "$NAME-prod"
  [ "$development" = 1 ]
  [[ $development_output == "[ERROR] "*"HTTP 502" ]]
  [ "$status" = 0 ]
  said WARN "HTTP 502"
}

@test "health says when the proxy is not reachable" {
  docker exec "$NAME-prod" sh -c 'kill -STOP 1 $(cat /proc/1/task/1/children)'
  in_production
  run "$script" health
  docker exec "$NAME-prod" sh -c 'kill -CONT 1 $(cat /proc/1/task/1/children)'
  [ "$status" = 0 ]
  said WARN "cannot reach "
}

@test "stats shows the use of resources once" {
  run -0 "$script" stats
  has "CPU %"
  has "$NAME-dev"
}

@test "connections counts what is established on port 8080" {
  run -0 "$script" connections
  said INFO "active connections on port 8080: 0"
  exec 8<>"/dev/tcp/127.0.0.1/$(docker port "$NAME-dev" 8080/tcp | cut -d: -f2)"
  exec 9<>"/dev/tcp/127.0.0.1/$(docker port "$NAME-dev" 8080/tcp | cut -d: -f2)"
  run "$script" connections
  exec 8>&- 9>&-
  said INFO "active connections on port 8080: 2"
}

@test "top refreshes every 2 seconds until Ctrl+C" {
  # Records the time of each refresh when the script calls Docker, which may take long to answer on a busy machine.
  export BEGUN=$BATS_TEST_TMPDIR/begun DOCKER
  DOCKER=$(command -v docker)
  mkdir "$BATS_TEST_TMPDIR/bin"
  cat >"$BATS_TEST_TMPDIR/bin/docker" <<'END'
#!/bin/bash
if [ "$1" = stats ]; then echo "${EPOCHREALTIME/./}" >>"$BEGUN"; fi
exec "$DOCKER" "$@"
END
  chmod +x "$BATS_TEST_TMPDIR/bin/docker"
  PATH=$BATS_TEST_TMPDIR/bin:$PATH run -0 timeout --preserve-status --signal=INT 15 "$script" top
  [ "$(grep -c "$NAME-dev" <<<"$output")" -ge 2 ]
  mapfile -t begun <"$BEGUN"
  local between=$((begun[1] - begun[0]))
  echo "microseconds between two refreshes: $between"
  [ "$between" -ge 1900000 ] && [ "$between" -lt 10000000 ]
}

@test "ssl-info shows dates, subject and issuer in production" {
  in_production
  run -0 "$script" ssl-info
  has "notBefore="
  has "notAfter="
  has "subject=CN = mesh.example"
  has "issuer=CN = mesh.example"
}

@test "ssl-info warns in development" {
  run -0 "$script" ssl-info
  said WARN "there is no certificate in development mode"
}

@test "ssl-test connects and tells whether the certificate is trusted" {
  in_production
  run -0 "$script" ssl-test
  has "TLSv1.3"
  said WARN "does not trust the certificate for localhost"
  SSL_CERT_FILE=$FILES/tls/fullchain.pem run -0 "$script" ssl-test localhost
  said INFO "the certificate is valid for localhost"
}

@test "ssl-test fails without a connection" {
  in_production
  run -1 "$script" ssl-test nowhere.invalid
  said ERROR "cannot establish a TLS connection to nowhere.invalid:443"
}

@test "ssl-test warns in development" {
  run -0 "$script" ssl-test
  said WARN "there is no TLS in development mode"
}

@test "ssl-test of a domain is made in development, too" {
  run -1 "$script" ssl-test nowhere.invalid
  said ERROR "cannot establish a TLS connection to nowhere.invalid:443"
}

@test "exec runs a shell command in the container" {
  run -0 "$script" exec 'id -u; echo one | wc -l'
  [ "$output" = $'10003\n1' ]
  run -0 "$script" exec cat /proc/1/comm
  [ "$output" = nginx ]
  run -7 "$script" exec exit 7
}

@test "exec needs a command" {
  run -2 "$script" exec
  said ERROR "missing argument <command>"
  has "Usage: "
}

@test "help prints the usage, the container running or not" {
  for PROXY_CONTAINER in "$NAME-dev" "$NAME-stopped"; do
    for command in help --help -h; do
      run -0 "$script" "$command"
      has "Usage: scripts/proxy.sh <command> [options]"
      for each in status logs access-log error-log test reload restart health stats connections top ssl-info ssl-test exec help; do
        has $'\n'"  $each"
      done
    done
  done
}

@test "no command prints the usage and fails" {
  run -2 "$script"
  has "Usage: "
}

@test "an unknown command is an error with the usage" {
  run -2 "$script" explode
  said ERROR "unknown command: explode"
  has "Usage: "
}

@test "every command but help fails when the proxy does not run" {
  for PROXY_CONTAINER in "$NAME-stopped" "$NAME-unheard-of"; do
    for command in status logs access-log error-log test reload restart health stats connections top ssl-info ssl-test 'exec id' exec; do
      # shellcheck disable=SC2086 # words of a command line
      run -1 "$script" $command
      [[ $output == "[ERROR] the proxy container is not running"* ]]
    done
  done
}

@test "the container is that of the compose service" {
  unset PROXY_CONTAINER
  COMPOSE_PROJECT_NAME=$NAME run -0 "$script" status
  has "$NAME-dev"
  COMPOSE_PROJECT_NAME=$NAME-other run -1 "$script" status
  said ERROR "is not running"
  # A leftover container that is newer.
  docker create --name "$NAME-left" --label com.docker.compose.project="$NAME" --label com.docker.compose.service=proxy \
    --label com.docker.compose.oneoff=False "$PROXY_IMAGE"
  COMPOSE_PROJECT_NAME=$NAME run "$script" status
  docker rm "$NAME-left"
  [ "$status" = 0 ]
  mkdir "$BATS_TEST_TMPDIR/scripts"
  cp "$script" "${script%/*}/lines.sh" "$BATS_TEST_TMPDIR/scripts"
  echo "COMPOSE_PROJECT_NAME=\"$NAME\"" >"$BATS_TEST_TMPDIR/.env"
  run -0 "$BATS_TEST_TMPDIR/scripts/proxy.sh" status
  has "$NAME-dev"
  # CDPATH must not lead to the .env of another directory.
  mkdir -p "$BATS_TEST_TMPDIR/other/scripts"
  cd "$BATS_TEST_TMPDIR"
  CDPATH=$BATS_TEST_TMPDIR/other run -0 scripts/proxy.sh status
  has "$NAME-dev"
}

@test "a missing tool is an error" {
  PATH=$(without docker) run -1 "$script" status
  said ERROR "docker is required"
  PATH=$(without curl) run -1 "$script" health
  said ERROR "curl is required"
  in_production
  PATH=$(without openssl) run -1 "$script" ssl-test
  said ERROR "openssl is required"
}

@test "a Docker that does not answer is an error" {
  unset PROXY_CONTAINER
  DOCKER_HOST=unix:///nowhere run -1 "$script" status
  said ERROR "Docker does not respond"
}

@test "prefixes are coloured on a terminal only" {
  run -0 script --quiet --return --command "$script status" /dev/null
  has $'\e[32m[INFO]\e[0m '
  run -0 script --quiet --return --command "$script ssl-info" /dev/null
  has $'\e[33m[WARN]\e[0m '
  run -2 script --quiet --return --command "$script explode" /dev/null
  has $'\e[31m[ERROR]\e[0m '
  run -0 script --quiet --return --command "env NO_COLOR=1 $script status" /dev/null
  [[ $output != *$'\e'* ]]
  run -0 "$script" status
  [[ $output != *$'\e'* ]]
}
