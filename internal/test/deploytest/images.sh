#!/usr/bin/env bash
# Builds the images that tests are based on from Debian packages only, without access to a registry.
#
#   images.sh TARGET...
#
#   debian      debian:bookworm-slim, as the official one is used here, with CA certificates
#   golang      golang:1.26-bookworm, debian with the Go tree of this machine
#   node        node:22-bookworm-slim, debian with the Node.js and the npm of this machine
#   postgres    fairlead-test/postgres, version 17, with the interface of the official image
#   monitoring  fairlead-test/prometheus, alertmanager and node-exporter, likewise
#   ha          fairlead-test/haproxy and fairlead-test/postgres-standby, version 15, with pg_basebackup
#   tailscale   tailscale/tailscale:v1.102.5, debian with the client that `make clients` built
#
# An existing Debian, Go, Node.js or Tailscale image is used as it is. Needs root, mmdebstrap, npm, jq and
# Docker 20.10 or newer.
set -euo pipefail

# Debian's own client has BuildKit built in.
docker=/usr/bin/docker
[ -x "$docker" ] || docker=docker
export DOCKER_BUILDKIT=1

have() { "$docker" image inspect "$1" >/dev/null 2>&1; }

debian() {
  have debian:bookworm-slim && return
  # shellcheck disable=SC2016 # $1 is the hook's own
  mmdebstrap --quiet --variant=minbase --include=ca-certificates \
    --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' bookworm - |
    "$docker" import -c 'CMD ["bash"]' - debian:bookworm-slim >/dev/null
}

golang() {
  have golang:1.26-bookworm && return
  debian
  local root context
  root=$(go env GOROOT)
  context=$(mktemp -d)
  # Copy the CA certificates that this machine trusts, so that modules can be fetched from where it
  # fetches them.
  cp /etc/ssl/certs/ca-certificates.crt "$context/"
  cat >"$context/Dockerfile" <<'D'
FROM debian:bookworm-slim
COPY go /usr/local/go
COPY ca-certificates.crt /etc/ssl/certs/
ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local
D
  tar -cf - -C "$context" Dockerfile ca-certificates.crt -C "$(dirname "$root")" "$(basename "$root")" |
    "$docker" build --quiet --tag golang:1.26-bookworm - >/dev/null
  rm -rf "$context"
}

node() {
  have node:22-bookworm-slim && return
  debian
  local npm context
  # npm is npm/bin/npm-cli.js in the directory of global modules.
  npm=$(dirname "$(dirname "$(realpath "$(type -P npm)")")")
  context=$(mktemp -d)
  cp /etc/ssl/certs/ca-certificates.crt "$context/"
  cat >"$context/Dockerfile" <<'D'
FROM debian:bookworm-slim
COPY node /usr/local/bin/
COPY npm /usr/local/lib/node_modules/npm
COPY ca-certificates.crt /etc/ssl/certs/
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
D
  tar -chf - -C "$context" Dockerfile ca-certificates.crt -C "$(dirname "$(type -P node)")" node -C "$(dirname "$npm")" npm |
    "$docker" build --quiet --tag node:22-bookworm-slim - >/dev/null
  rm -rf "$context"
}

tailscale() {
  have tailscale/tailscale:v1.102.5 && return
  debian
  local context clients=${XDG_CACHE_HOME:-$HOME/.cache}/fairlead-clients/v1.102.5
  [ -e "$clients" ] || make --directory="$(dirname "$0")/../../.." clients >/dev/null
  context=$(mktemp -d)
  cat >"$context/Dockerfile" <<'D'
FROM debian:bookworm-slim
COPY tailscale tailscaled /usr/local/bin/
D
  tar -cf - -C "$context" Dockerfile -C "$clients" tailscale tailscaled |
    "$docker" build --quiet --tag tailscale/tailscale:v1.102.5 - >/dev/null
  rm -rf "$context"
}

# build NAME reads a Dockerfile that copies nothing from stdin. Docker's cache makes repeated builds
# fast.
build() { "$docker" build --quiet --tag "fairlead-test/$1" - >/dev/null; }

# Like the official image: user postgres with ID 999, PGDATA, and on first start POSTGRES_USER,
# POSTGRES_PASSWORD and the scripts in /docker-entrypoint-initdb.d. The clients are Debian's.
postgres() {
  debian
  "$(dirname "$0")/../pgtest/install.sh"
  local context
  context=$(mktemp -d)
  cat >"$context/Dockerfile" <<'D'
FROM debian:bookworm-slim
COPY 17 /usr/local/lib/postgresql/17
RUN groupadd --system --gid 999 postgres && useradd --system --uid 999 --gid 999 --home-dir /var/lib/postgresql postgres \
 && mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf \
 && apt-get update && apt-get install -y --no-install-recommends postgresql-client-15 && rm -rf /var/lib/apt/lists/* \
 && ln -s /usr/lib/postgresql/15/bin/* /usr/local/lib/postgresql/17/bin/* /usr/local/bin/ \
 && mkdir -p /run/postgresql /var/lib/postgresql/data && chown postgres:postgres /run/postgresql && chown postgres:postgres /var/lib/postgresql/data && chmod 1777 /var/lib/postgresql/data \
 && printf '%s\n' '#!/bin/sh' 'set -eu' \
      'if [ ! -s "$PGDATA/PG_VERSION" ]; then' \
      '  echo "$POSTGRES_PASSWORD" >/tmp/pass' \
      '  initdb --username="$POSTGRES_USER" --pwfile=/tmp/pass --auth-local=trust --auth-host=scram-sha-256' \
      '  rm /tmp/pass' \
      '  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"' \
      '  pg_ctl --wait --options="-c listen_addresses= -c unix_socket_directories=/run/postgresql" start' \
      '  for script in /docker-entrypoint-initdb.d/*.sh; do [ ! -e "$script" ] || . "$script"; done' \
      '  pg_ctl --wait --mode=fast stop' \
      'fi' \
      'exec "$@" -c "listen_addresses=*" -c unix_socket_directories=/run/postgresql' >/usr/local/bin/entrypoint \
 && chmod 755 /usr/local/bin/entrypoint
ENV PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
EXPOSE 5432
ENTRYPOINT ["entrypoint"]
CMD ["postgres"]
D
  tar -cf - -C "$context" Dockerfile -C /usr/local/lib/postgresql 17 | "$docker" build --quiet --tag fairlead-test/postgres - >/dev/null
  rm -rf "$context"
}

# The PostgreSQL 17 of the other tests has no programs of its own to copy a primary.
ha() {
  debian
  build haproxy <<'D'
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*
D
  build postgres-standby <<'D'
FROM debian:bookworm-slim
RUN groupadd --system --gid 999 postgres && useradd --system --uid 999 --gid 999 --home-dir /var/lib/postgresql postgres \
 && mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf \
 && apt-get update && apt-get install -y --no-install-recommends postgresql-15 && rm -rf /var/lib/apt/lists/* \
 && ln -s /usr/lib/postgresql/15/bin/* /usr/local/bin/ \
 && mkdir -p /var/lib/postgresql/data && chown postgres:postgres /var/lib/postgresql/data
D
}

# Like the official images: the program is the entry point, wget is there for health checks, and the
# user nobody can write to the data directory.
monitoring() {
  debian
  monitor prometheus prometheus /prometheus
  monitor alertmanager prometheus-alertmanager /alertmanager
  monitor node-exporter prometheus-node-exporter /nonexistent
}

monitor() { # NAME PACKAGE DATA
  build "$1" <<D
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends $2 wget && rm -rf /var/lib/apt/lists/* \
 && mkdir -p $3 && chown nobody:nogroup $3
USER nobody
ENTRYPOINT ["/usr/bin/$2"]
D
}

for target; do
  case $target in
    debian | golang | node | postgres | monitoring | ha | tailscale) "$target" ;;
    *) echo "images.sh: no image $target" >&2; exit 2 ;;
  esac
done
