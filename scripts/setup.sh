#!/usr/bin/env bash
# Sets up Fairlead with Docker Compose in this directory and starts it: see usage below.
#
# It can be run again at any time, even after an interruption. Existing secrets, keys and changes in config.yaml are kept;
# only server_url follows the domain. Images from another commit are rebuilt.
set -euo pipefail
readonly called_from=$PWD
CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END'
Usage: scripts/setup.sh [--domain NAME --email ADDRESS | --dev] [options]
       scripts/setup.sh --check

  --domain NAME       public name of the server, such as mesh.example.com; prompted for if not given
  --email ADDRESS     contact address for the certificate authority; prompted for if not given
  --dev               development, for this machine only: plain HTTP on http://localhost:8000, no domain
  --sqlite            store the data in an SQLite file instead of PostgreSQL
  --cert FILE --key FILE
                      use this certificate chain and private key instead of a Let's Encrypt certificate
  --base-domain NAME  domain of the node names (default mesh.internal)
  --user NAME         name of the first user (default admin)
  --check             check files, passwords and services without changing anything
  -h, --help          show this help

Requires Docker with Compose, and root or membership in the group docker.
END
}

# Users inside the containers. They own the files that contain their secrets.
readonly service_user=10001 console_user=10002 proxy_user=10003
readonly patience=120 # seconds for a service to become healthy

# shellcheck source=scripts/lines.sh
. scripts/lines.sh
# shellcheck source=scripts/check.sh
. scripts/check.sh

domain='' email='' mode='' sqlite='' cert='' key='' base_domain='' user='' check=''
acme='' # set if certificates come from an ACME authority
parse() {
  local name
  while [ $# -gt 0 ]; do
    case $1 in
      --domain | --email | --cert | --key | --base-domain | --user)
        [ -n "${2:-}" ] || wrong_usage "missing value for $1"
        name=${1#--}
        printf -v "${name//-/_}" %s "$2"
        shift
        ;;
      --dev) mode=dev ;;
      --sqlite) sqlite=yes ;;
      --check) check=yes ;;
      -h | --help) usage; exit ;;
      *) wrong_usage "unknown option: $1" ;;
    esac
    shift
  done
  [ -z "$mode" ] || [ -z "$domain$email$cert$key" ] || wrong_usage "--dev cannot be combined with --domain, --email, --cert or --key"
  [ -z "$cert$key" ] || { [ -n "$cert" ] && [ -n "$key" ]; } || wrong_usage "--cert and --key must be used together"
  [[ -z $cert || $cert == /* ]] || cert=$called_from/$cert
  [[ -z $key || $key == /* ]] || key=$called_from/$key
}

# --- .env

setting() { # NAME [DEFAULT]
  local line=''
  if [ -e .env ]; then line=$(grep "^$1=" .env | tail -n 1) || true; fi
  if [ -n "${line#*=}" ]; then echo "${line#*=}"; else echo "${2:-}"; fi
}

set_setting() { # NAME VALUE
  # Does not use grep, because every user of the machine can see the arguments of commands.
  if [ -e .env ] && [[ $'\n'$(<.env)$'\n' == *$'\n'"$1=$2"$'\n'* ]]; then return; fi
  (
    umask 077
    { if [ -e .env ]; then grep -v "^$1=" .env || true; fi; echo "$1=$2"; } >.env.new
    mv .env.new .env
  )
}

random() { head -c 96 /dev/urandom | base64 | tr -d '+/=\n' | cut -c "1-$1"; }

overlay() { [[ ":$(setting COMPOSE_FILE):" == *":deploy/compose/$1.yaml:"* ]]; }
profile() { [[ ",$(setting COMPOSE_PROFILES)," == *",$1,"* ]]; }

ask() { # QUESTION
  [ -t 0 ] || return 1
  local answer=''
  while [ -z "$answer" ]; do read -rp "$1 " answer || return 1; done
  echo "$answer"
}

# Decides on mode, domain and database. Anything not given as an option stays as it is in .env.
decide() {
  if [ -z "$mode$domain" ] && overlay dev; then mode=dev; fi
  if [ -z "$mode" ]; then
    mode=prod
    domain=${domain:-$(setting DOMAIN)}
    domain=${domain:-$(ask 'Domain of the server, such as mesh.example.com:')} || wrong_usage "missing domain: use --domain or --dev"
    [[ $domain =~ ^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$ ]] || wrong_usage "invalid domain: $domain"
    if [ -z "$cert" ] && { [ -n "$email" ] || profile acme || ! overlay prod; }; then acme=yes; fi
    email=${email:-$(setting ACME_EMAIL)}
    if [ -n "$acme" ]; then
      email=${email:-$(ask 'Email address for the certificate authority:')} || wrong_usage "missing email address: use --email, or --cert and --key for your own certificate"
      [[ $email == ?*@?* && $email != *[[:space:]]* ]] || wrong_usage "invalid email address: $email"
    fi
  fi
  if [ -n "$(setting COMPOSE_FILE)" ]; then
    if overlay postgres && [ -n "$sqlite" ]; then
      die "this deployment stores its data in PostgreSQL; move the data to SQLite first: docs/backup.md"
    fi
    overlay postgres || sqlite=yes
  fi
}

write_env() {
  local files profiles
  files=$(setting COMPOSE_FILE)
  if [ -z "$files" ]; then
    info "writing .env"
    files=deploy/compose/base.yaml
    [ -n "$sqlite" ] || files+=:deploy/compose/postgres.yaml
    files+=:deploy/compose/$mode.yaml:deploy/compose/relay.yaml
    [ ! -e deploy/compose/monitoring.yaml ] || files+=:deploy/compose/monitoring.yaml
  elif ! overlay "$mode"; then
    case $mode=$(setting RELAY_PUBLISH) in # an address that this script wrote for the other mode
      prod=127.0.0.1:3478) set_setting RELAY_PUBLISH 0.0.0.0:3478 ;;
      dev=0.0.0.0:3478) set_setting RELAY_PUBLISH '' ;;
    esac
    files=$(sed -E "s#deploy/compose/(dev|prod)\.yaml#deploy/compose/$mode.yaml#" <<<"$files")
  fi
  profiles=$(setting COMPOSE_PROFILES | tr , '\n' | grep -vx acme | paste -sd, -) || true
  [ -z "$acme" ] || profiles+=${profiles:+,}acme
  set_setting COMPOSE_PROJECT_NAME "$(setting COMPOSE_PROJECT_NAME fairlead)"
  set_setting COMPOSE_PROFILES "$profiles"
  if [ "$mode" = prod ]; then
    set_setting DOMAIN "$domain"
    set_setting ACME_EMAIL "$email"
  elif [ -z "$(setting RELAY_PUBLISH)" ] && [[ $(setting PROXY_DEV_PUBLISH 127.0.0.1:8000) == 127.* ]]; then
    set_setting RELAY_PUBLISH 127.0.0.1:3478 # other machines cannot reach the server either
  fi
  if [ -z "$sqlite" ] && [ -z "$(setting POSTGRES_PASSWORD)" ]; then set_setting POSTGRES_PASSWORD "$(random 32)"; fi
  # Grafana keeps the password of its first start, so set one only if Grafana cannot have started yet.
  if [[ ,$profiles, != *,grafana,* ]] && [ -z "$(setting GRAFANA_PASSWORD)" ]; then set_setting GRAFANA_PASSWORD "$(random 32)"; fi
  # Written last, so that an .env with this setting is complete.
  set_setting COMPOSE_FILE "$files"
  chmod 600 .env
}

# --- Docker

compose() { "${compose[@]}" "$@"; }

find_docker() {
  command -v docker >/dev/null || die "Docker is not installed: https://docs.docker.com/engine/install/"
  docker version >/dev/null 2>&1 || die "Docker does not respond: start it, and run this script as root or as a member of the group docker"
  if docker compose version >/dev/null 2>&1; then
    compose=(docker compose)
  elif command -v docker-compose >/dev/null; then
    compose=(docker-compose)
  else
    die "Docker Compose is not installed: https://docs.docker.com/compose/install/"
  fi
  # Docker before version 23 does not use BuildKit by default.
  export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
}

container_of() { # SERVICE; by the labels that every version of Compose sets
  docker ps --all --quiet --filter "label=com.docker.compose.project=$(setting COMPOSE_PROJECT_NAME)" \
    --filter "label=com.docker.compose.service=$1" --filter label=com.docker.compose.oneoff=False
}

# Refuses to replace the containers of another directory with ones that have other secrets.
own_project() {
  local project dir
  project=$(setting COMPOSE_PROJECT_NAME fairlead)
  docker ps --all --filter "label=com.docker.compose.project=$project" --format '{{.Label "com.docker.compose.project.working_dir"}}' |
    sort -u | while read -r dir; do
    [ ! -d "$dir" ] || [ "$dir" -ef . ] || [ "$dir" -ef deploy/compose ] ||
      die "the containers of $project belong to $dir: run this script there, or choose another COMPOSE_PROJECT_NAME and other ports in .env"
  done
}

# Compose prefers the environment to .env, but this script reads only .env, so the two must not differ.
same_environment() {
  local name
  while read -r name; do
    [ -z "${!name+set}" ] || [ "${!name}" = "$(setting "$name")" ] ||
      die "$name has different values in the environment and in .env: unset it in the environment"
  done < <(sed -nE 's/^([A-Z_]+)=.*/\1/p' .env)
}

image() { echo "fairlead/$1:$(setting IMAGE_TAG dev)"; }
built_here() { # the images that this deployment uses
  echo server console proxy
  ! profile acme || echo certbot
}

# Without .git, as in an unpacked archive, git would search the parent directories. It is safe for root to trust anyone's
# clone: root is running this script from it.
from_git() { [ -e .git ] && git -c safe.directory='*' "$@" 2>/dev/null; }
head_commit() { from_git rev-parse HEAD || echo unknown; }

# Git before version 2.38 refuses to work for root in another user's clone.
check_git() {
  [ ! -e .git ] || [ "$(head_commit)" != unknown ] ||
    warn "cannot tell which commit is checked out, so images are not compared with it: install git, or run this script as the owner of the directory"
}

built_from() { # IMAGE or container; prints the commit, or nothing if it does not exist
  docker inspect -f '{{index .Config.Labels "org.opencontainers.image.revision"}}' "$1" 2>/dev/null || true
}

# Reports whether the images in use are those kept for a rollback, which are not rebuilt.
kept_images() { [[ $(setting IMAGE_TAG) == *before ]]; }

# keep_image NAME tags the image of the running container for a rollback. An image that never ran, or is not healthy,
# does not replace the one kept before.
keep_image() {
  local container running=''
  container=$(container_of "$(service_of "$1")")
  [ -z "$container" ] || running=$(docker inspect -f \
    '{{if .State.Running}}{{if .State.Health}}{{if ne .State.Health.Status "unhealthy"}}{{.Image}}{{end}}{{else}}{{.Image}}{{end}}{{end}}' "$container")
  [ -z "$running" ] || docker tag "$running" "$(image "$1")-before"
}

service_of() { case $1 in server) echo fairlead ;; *) echo "$1" ;; esac; } # the Compose service of an image

# Builds images that are missing or come from another commit, such as after git pull.
build_images() {
  local name image commit outdated='' missing='' services=()
  commit=$(head_commit)
  check_git
  ! kept_images || warn "IMAGE_TAG in .env selects the previous images: remove it to upgrade"
  for name in $(built_here); do
    image=$(image "$name")
    if ! docker image inspect "$image" >/dev/null 2>&1; then
      missing+=" $name"
    elif [ "$commit" != unknown ] && [ "$(built_from "$image")" != "$commit" ] && ! kept_images; then
      outdated+=" $name"
    fi
  done
  [ -n "$missing$outdated" ] || return 0
  for name in $outdated; do keep_image "$name"; done
  for name in $missing $outdated; do services+=("$(service_of "$name")"); done
  [ -z "$outdated" ] || info "upgrading to commit ${commit:0:12}; previous images are kept under the tag $(setting IMAGE_TAG dev)-before"
  info "building images:$missing$outdated (this takes a few minutes)"
  # SOURCE_TIME is the time of the commit, so that builds of one commit are identical.
  SOURCE_COMMIT=$commit SOURCE_VERSION=$(from_git describe --tags --always --dirty || setting IMAGE_TAG dev) \
    SOURCE_TIME=$(TZ=UTC from_git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd || echo unknown) compose build "${services[@]}"
}

# as_owner SCRIPT [ARG...] runs an sh script in this directory as root in a container. That way files can be owned by
# the users of the containers without root on this machine.
as_owner() {
  local script=$1
  shift
  docker run --rm --interactive --network none --user 0:0 --volume "$PWD:/deployment" --workdir /deployment \
    --entrypoint /bin/sh "$(image proxy)" -euc "$script" sh "$@"
}

write_private() { # FILE USER, text from stdin
  # shellcheck disable=SC2016 # for the shell in the container
  as_owner 'umask 077; cat >"$1.new"; chown "$2:$2" "$1.new"; mv "$1.new" "$1"' "$1" "$2"
}

# shellcheck disable=SC2016 # for the shell in the container
read_private() { as_owner '[ ! -e "$1" ] || cat "$1"' "$1" </dev/null; }

# --- config.yaml

yaml_value() { # KEY, the last part of it; text from stdin
  sed -nE "s/^ *$1: *([^ #].*)$/\1/p" | sed -E "s/ +#.*$//; s/^[\"'](.*)[\"']\$/\1/; q"
}

server_url() {
  local publish
  if [ "$mode" = dev ]; then
    publish=$(setting PROXY_DEV_PUBLISH 127.0.0.1:8000)
    echo "http://localhost:${publish##*:}"
  else
    publish=$(setting PROXY_HTTPS_PUBLISH 443)
    echo "https://$domain:${publish##*:}"
  fi
}

database_section() {
  if [ -n "$sqlite" ]; then
    printf '%s\n' '  type: sqlite' '  sqlite:' '    path: /var/lib/fairlead/db.sqlite'
  else
    printf '%s\n' '  type: postgres' '  postgres:' '    host: db' '    name: fairlead' '    user: fairlead' \
      "    pass: $(setting POSTGRES_PASSWORD) # the same as POSTGRES_PASSWORD in .env" \
      '    ssl: disable # only these two containers can reach this network' \
      '    max_open_conns: 10' '    max_idle_conns: 10' '    conn_max_idle_time_secs: 3600'
  fi
}

new_config() {
  local relay
  relay=$(setting RELAY_PUBLISH 3478)
  cat <<END
# Configuration of the server, created by scripts/setup.sh. docs/configuration.md describes every key.
# After a change: docker compose restart fairlead
server_url: $(server_url)
listen_addr: 0.0.0.0:8080
metrics_listen_addr: 0.0.0.0:9090 # published on 127.0.0.1 only
trusted_proxies:
  - $(setting FRONT_SUBNET 10.211.77.0/24) # FRONT_SUBNET in .env

database:
$(database_section)

dns:
  magic_dns: true
  base_domain: ${base_domain:-mesh.internal}

derp:
  server:
    enabled: true
    stun_listen_addr: 0.0.0.0:3478
    stun_public_port: ${relay##*:} # RELAY_PUBLISH in .env

log:
  level: info
  format: text
END
}

# Asks the server whether it accepts its configuration. If not, prints the reason on stderr and what to do on stdout.
accept_config() {
  local report
  ! report=$(compose run --rm --no-deps -T fairlead config check 2>&1 </dev/null) || return 0
  echo "$report" >&2
  case $report in
    *'failed to parse configuration'*) echo "config.yaml has the problems shown above; fix them (as root)" ;;
    *) echo "config.yaml could not be checked, because the container failed: fix the problem shown above" ;;
  esac
  return 1
}

# outdated SERVICE FILE succeeds if the service started before its configuration was written, in this or an interrupted run.
outdated() {
  local container started
  container=$(container_of "$1")
  started=$(docker inspect -f '{{.State.StartedAt}}' "$container")
  [[ $(date -d "$started" +%s.%N) < $(stat -c %.9Z "$2") ]]
}

write_config() {
  local config url
  config=$(read_private config.yaml)
  if [ -z "$config" ]; then
    # The password is written to YAML and to .env, whose quoting rules differ.
    [ -n "$sqlite" ] || [[ $(setting POSTGRES_PASSWORD) =~ ^[A-Za-z0-9._-]+$ ]] || die "POSTGRES_PASSWORD in .env contains characters other than letters, digits and . _ -"
    info "writing config.yaml"
    new_config | write_private config.yaml $service_user
    return
  fi
  if [ -z "$sqlite" ] && [ "$(yaml_value pass <<<"$config")" != "$(setting POSTGRES_PASSWORD)" ]; then
    die "the database passwords differ: set database.postgres.pass in config.yaml and POSTGRES_PASSWORD in .env to the same value"
  fi
  url=$(server_url)
  if [ "$(yaml_value server_url <<<"$config")" != "$url" ]; then
    info "setting server_url in config.yaml to $url"
    sed -E "s|^server_url:.*|server_url: $url|" <<<"$config" | write_private config.yaml $service_user
  fi
}

# --- certificate

write_certificate() {
  local faults
  [ -n "$acme" ] || remove_certbot
  [ "$mode" = prod ] || return 0
  as_owner "mkdir -p tls; chmod 755 tls; chown $proxy_user:$proxy_user tls" </dev/null
  if [ -n "$cert" ]; then
    info "installing the certificate $cert"
    cat "$cert" "$key" | pair_fits || die "$cert and $key do not match, are not in PEM format, or the key has a passphrase"
    faults=$(certificate_faults <"$cert")
    [ -z "$faults" ] || die "$cert $faults"
    write_private tls/privkey.pem $proxy_user <"$key"
    write_private tls/fullchain.pem $proxy_user <"$cert"
    as_owner 'chmod 644 tls/fullchain.pem' </dev/null
    return
  fi
  ! read_pair | pair_fits || return 0
  [ -n "$acme" ] || die "tls/ contains no certificate: run scripts/setup.sh with --cert FILE --key FILE, or with --email ADDRESS to have one issued"
  # nginx does not start without a certificate, and the authority issues none unless nginx runs.
  info "creating a temporary certificate, valid for two days, until the authority issues one"
  # shellcheck disable=SC2016 # for the shell in the container
  as_owner '
    umask 077
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$(printf %.64s "$1")" \
      -addext "subjectAltName=DNS:$1" -keyout tls/privkey.pem -out tls/fullchain.pem 2>/tmp/said || { cat /tmp/said >&2; exit 1; }
    chmod 644 tls/fullchain.pem; chown "$2:$2" tls/fullchain.pem tls/privkey.pem' "$domain" $proxy_user </dev/null
}

read_pair() { as_owner 'cat tls/fullchain.pem tls/privkey.pem 2>/dev/null || true' </dev/null; }

pair_fits() { # certificate and key from stdin
  # shellcheck disable=SC2016 # for the shell in the container
  as_owner '
    umask 077; cat >/tmp/pair
    of_cert=$(openssl x509 -in /tmp/pair -noout -pubkey 2>/dev/null)
    of_key=$(openssl pkey -in /tmp/pair -passin pass: -pubout 2>/dev/null)
    [ "$of_cert" = "$of_key" ]'
}

# certificate_faults prints why devices would reject the certificate on stdin.
certificate_faults() {
  # shellcheck disable=SC2016 # for the shell in the container
  as_owner '
    cat >/tmp/certificate
    certificate() { openssl x509 -in /tmp/certificate -noout "$@"; }
    if ! certificate -checkend 0 >/dev/null; then
      echo "has expired: $(certificate -enddate | cut -d= -f2)"
    elif ! certificate -checkhost "$1" | grep -q "does match"; then
      echo "is not for $1, but for $(certificate -ext subjectAltName 2>/dev/null | sed -n "2s/^ *//p")"
    fi' "$domain"
}

# self_signed succeeds if no authority signed the certificate, as with the temporary one that this script makes.
self_signed() {
  # shellcheck disable=SC2016 # for the shell in the container
  as_owner '[ "$(openssl x509 -in tls/fullchain.pem -noout -subject_hash)" = "$(openssl x509 -in tls/fullchain.pem -noout -issuer_hash)" ]' </dev/null
}

# Issuing the first certificate is what fails most often: the name does not resolve to this machine, or port 80 is closed.
await_certificate() {
  local begin=$SECONDS certbot
  [ -n "$acme" ] || return 0
  info "waiting for the certificate for $domain"
  certbot=$(container_of certbot)
  # If certbot failed before this run, it would wait before it retries.
  ! docker exec "$certbot" test -e /tmp/failed || docker exec "$certbot" certificate now >/dev/null 2>&1 || true
  until docker exec "$certbot" test -e /tmp/good; do
    if docker exec "$certbot" test -e /tmp/failed || [ $((SECONDS - begin)) -ge $patience ]; then
      compose logs --tail=20 certbot >&2
      die "no certificate was issued for $domain, and devices cannot connect without one. The log above shows the reason." \
        "Everything else is running. certbot retries automatically; to retry now, run this script again"
    fi
    sleep 1
  done
}

# A certbot left running would replace your certificate with its own.
remove_certbot() { container_of certbot | xargs --no-run-if-empty docker rm --force >/dev/null; }

# --- services

wait_for() { # SERVICE COMMAND...
  local service=$1 begin=$SECONDS
  shift
  until docker exec "$(container_of "$service" | head -n 1)" "$@" >/dev/null 2>&1 </dev/null; do
    if [ $((SECONDS - begin)) -ge $patience ]; then
      error "$service is not healthy after $patience seconds; the end of its log:"
      compose logs --tail=20 "$service" >&2
      database_accepts || true
      exit 1
    fi
    sleep 1
  done
  info "$service is healthy"
}

key_works() { # KEY
  FAIRLEAD_CLI_API_KEY=$1 docker exec -e FAIRLEAD_CLI_API_KEY "$(container_of fairlead)" \
    fairlead users list --server http://127.0.0.1:8080 >/dev/null 2>&1
}

# The console's own key is read-only: people sign in with their own keys.
write_console() {
  local config secret api_key
  config=$(read_private console.yaml)
  api_key=$(yaml_value api_key <<<"$config")
  if [ -n "$api_key" ] && key_works "$api_key"; then return; fi
  info "creating the console's API key"
  api_key=$(compose exec -T fairlead fairlead apikeys create --expiration 999d --role read </dev/null)
  secret=$(yaml_value cookie_secret <<<"$config")
  write_private console.yaml $console_user <<END
# Configuration of the console, created by scripts/setup.sh. After a change: docker compose restart console
coordinator_url: http://fairlead:8080
api_key: $api_key
cookie_secret: ${secret:-$(random 32)}
log_level: info
END
}

start() {
  info "starting the server"
  compose up -d fairlead
  ! outdated fairlead config.yaml || compose restart fairlead
  wait_for fairlead fairlead health
  write_console
  info "starting the other services"
  compose up -d
  ! outdated console console.yaml || compose restart console
  wait_for console fairlead-console health
  wait_for proxy curl -fsS -o /dev/null http://127.0.0.1:8080/health
}

# --- check

check_all() {
  local advice
  [ -e .env ] || die ".env is missing: run scripts/setup.sh"
  same_environment
  [ "$(stat -c %a .env)" = 600 ] || problem ".env has mode $(stat -c %a .env), not 600: chmod 600 .env"
  if overlay dev; then mode=dev; else mode=prod; fi
  overlay postgres || sqlite=yes
  domain=$(setting DOMAIN)
  check_git
  docker image inspect "$(image proxy)" >/dev/null 2>&1 || die "the images are missing: run scripts/setup.sh"

  check_file config.yaml 600 $service_user
  [ ! -e config.yaml ] || advice=$(accept_config) || problem "$advice, then run scripts/setup.sh"
  check_file console.yaml 600 $console_user
  if [ -z "$sqlite" ] && [ "$(read_private config.yaml | yaml_value pass)" != "$(setting POSTGRES_PASSWORD)" ]; then
    problem "the database passwords differ: set database.postgres.pass in config.yaml and POSTGRES_PASSWORD in .env to the same value, then run docker compose restart fairlead"
  else
    database_accepts
  fi
  if [ "$mode" = prod ]; then
    check_file tls/fullchain.pem 644 $proxy_user
    check_file tls/privkey.pem 600 $proxy_user
    check_certificate
  fi
  check_console_key
  check_services
  [ $problems -eq 0 ] || die "problems found: $problems"
  info "no problems found"
}

# --- main

# The first run creates a user, an API key and a pre-auth key, so that a device can join at once. Later runs only say how.
say_what_next() {
  local fairlead=("${compose[@]}" exec -T fairlead fairlead) publish port url console tunnel='' users api_key key
  publish=$(setting CONSOLE_PUBLISH 127.0.0.1:3001)
  port=${publish##*:} url=$(server_url)
  url=${url%:443}
  console=https://$domain:$port/admin/
  if [ "$mode" = dev ]; then
    console=http://localhost:$port/admin/
  elif [[ $publish == 127.* ]]; then
    console=https://localhost:$port/admin/
    tunnel=" (first run on your computer: ssh -L $port:127.0.0.1:$port $domain)"
  fi
  [ "$mode" = prod ] || url+=", for this machine only"
  users=$("${fairlead[@]}" users list --output=json </dev/null) # if this fails, there may be users: create nothing
  if [[ $users == *'"name"'* ]]; then
    info "Fairlead is running at $url"
    info "console: $console$tunnel"
    info "to sign in to the console, create an API key: ${fairlead[*]} apikeys create --expiration 90d"
    info "to add a device, create a pre-auth key: ${fairlead[*]} preauthkeys create --user NAME"
    return
  fi
  "${fairlead[@]}" users create "${user:=admin}" </dev/null >/dev/null
  api_key=$("${fairlead[@]}" apikeys create --expiration 90d </dev/null)
  key=$("${fairlead[@]}" preauthkeys create --user "$user" --reusable --expiration 24h 2>/dev/null </dev/null) ||
    die "no pre-auth key was created: run this script again, and follow its instructions"
  cat <<END

Fairlead is running at $url

Console: $console$tunnel
Sign in with this API key, which is valid for 90 days:

  $api_key

Install Tailscale on your devices, and join with this command. It works for any
number of devices for 24 hours. They belong to the user $user:

  sudo tailscale up --login-server ${url%%,*} --auth-key $key

These keys are not shown again.
END
}

main() {
  parse "$@"
  local file advice
  for file in .env config.yaml console.yaml; do
    # A link would be replaced, and its target is not visible from a container.
    [ ! -L "$file" ] || die "$file is a symbolic link: replace it with the file itself"
  done
  [ ! -e .env ] || [ -r .env ] || die ".env belongs to $(stat -c %U .env): run this script as that user or as root"
  find_docker
  if [ -n "$check" ]; then check_all; return; fi
  own_project
  decide
  for file in "$cert" "$key"; do
    [ -z "$file" ] || [ -r "$file" ] || die "cannot read $file"
  done
  write_env
  same_environment
  build_images
  # Makes these readable for the users of the containers, in case of a clone made under a strict umask.
  as_owner 'chmod -R a+rX deploy/nginx/local deploy/monitoring deploy/postgres' </dev/null
  write_config
  advice=$(accept_config) || die "$advice, then run this script again"
  write_certificate
  start
  await_certificate
  say_what_next
}

main "$@"
