#!/usr/bin/env bash
# The parts of setup.sh --check. setup.sh sources this file, which uses its functions and variables.

problems=0
problem() { error "$@"; problems=$((problems + 1)); }

check_file() { # FILE MODE USER
  local found
  # shellcheck disable=SC2016 # for the shell in the container
  found=$(as_owner '[ ! -e "$1" ] || stat -c "%a %u" "$1"' "$1" </dev/null)
  if [ -z "$found" ]; then
    problem "$1 is missing: run scripts/setup.sh"
  elif [ "$found" != "$2 $3" ]; then
    problem "$1 has mode and owner $found instead of $2 $3; as root, run: chmod $2 $1; chown $3:$3 $1"
  fi
}

# Checks that the database accepts the password in .env: it keeps the one that it was created with.
database_accepts() {
  local container
  [ -z "$sqlite" ] || return 0
  container=$(container_of db)
  # A database that is not running cannot reject a password.
  [ -n "$container" ] && docker exec "$container" pg_isready --quiet --username=fairlead --dbname=fairlead >/dev/null 2>&1 || return 0
  PGPASSWORD=$(setting POSTGRES_PASSWORD) docker exec -e PGPASSWORD "$container" \
    psql --host=db --username=fairlead --dbname=fairlead --command='SELECT 1' >/dev/null 2>&1 ||
    problem "the database rejects the password in .env; restore the one it was created with, or set the new one:" \
      "docker compose exec db psql --username=fairlead --command=\"ALTER ROLE fairlead PASSWORD '...'\""
}

# Lists the services that .env selects. Older versions of Compose also list those of disabled profiles.
services() {
  local service
  for service in $(compose config --services); do
    case $service in
      certbot) profile acme || continue ;;
      prometheus | alertmanager | node-exporter) profile monitoring || continue ;;
      grafana) profile grafana || continue ;;
    esac
    echo "$service"
  done
}

# The key can be wrong after a restore into a new deployment: the backup does not contain the new console's key.
check_console_key() {
  local api_key container
  api_key=$(read_private console.yaml | yaml_value api_key)
  container=$(container_of fairlead)
  # A server that does not answer cannot reject a key.
  [ -n "$api_key" ] && [ -n "$container" ] && docker exec "$container" fairlead health >/dev/null 2>&1 || return 0
  key_works "$api_key" || problem "the server rejects the console's API key in console.yaml: run scripts/setup.sh to create a new one"
}

check_certificate() {
  local faults untrusted='' renew='docker compose logs certbot'
  profile acme || renew='scripts/setup.sh --cert FILE --key FILE'
  if ! read_pair | pair_fits; then
    problem "tls/fullchain.pem and tls/privkey.pem are damaged or do not match: run scripts/setup.sh --cert FILE --key FILE"
    return
  fi
  faults=$(as_owner 'cat tls/fullchain.pem' </dev/null | certificate_faults)
  ! self_signed || untrusted=yes
  if [ -n "$faults" ]; then
    problem "the certificate $faults; run $renew"
  elif [ -n "$untrusted" ] && profile acme; then
    problem "the authority has not issued a certificate yet, and devices cannot connect without one: run $renew"
  elif ! as_owner 'openssl x509 -in tls/fullchain.pem -noout -checkend 604800 >/dev/null' </dev/null; then
    warn "the certificate expires within a week: run $renew"
  elif [ -n "$untrusted" ]; then
    warn "the certificate is self-signed: devices reject it unless they trust it explicitly"
  fi
}

check_version() { # SERVICE CONTAINER
  local commit runs
  case $1 in fairlead | console | proxy | certbot) ;; *) return ;; esac
  commit=$(head_commit) runs=$(built_from "$2")
  [ "$commit" != unknown ] && [ "$runs" != "$commit" ] || return 0
  if kept_images; then
    warn "$1 runs commit ${runs:0:12}, selected by IMAGE_TAG in .env, but ${commit:0:12} is checked out here"
  else
    warn "$1 runs commit ${runs:0:12}, but ${commit:0:12} is checked out here: run scripts/setup.sh to upgrade"
  fi
}

# healthy_now CONTAINER runs the health check that Docker will run at the end of the interval. The proxy's check hangs while the
# server is frozen, so there is a limit, as in Docker.
healthy_now() {
  local words
  mapfile -t words < <(docker inspect -f '{{range .Config.Healthcheck.Test}}{{println .}}{{end}}' "$1" | grep .)
  [ "${words[0]:-}" = CMD ] && timeout 10 docker exec "$1" "${words[@]:1}" >/dev/null 2>&1
}

check_services() {
  local service container state
  for service in $(services); do
    container=$(container_of "$service")
    if [ -z "$container" ]; then
      problem "$service is not running: run docker compose up -d"
      continue
    fi
    # Docker keeps the last health of a container that was stopped or paused.
    state=$(docker inspect -f '{{if and (eq .State.Status "running") .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}' "$container")
    case $state in
      healthy | running) ;;
      starting) healthy_now "$container" || warn "$service has just started and is not healthy yet: check again in a minute" ;;
      exited | created) problem "$service is not running: run docker compose up -d, or docker compose logs $service to see why" ;;
      *) problem "$service is $state: run docker compose logs $service to see why" ;;
    esac
    check_version "$service" "$container"
  done
}
