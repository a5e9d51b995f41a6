#!/bin/sh
# The demo's setup and devices. Called by compose.yaml, deploy/compose/ha.yaml and deploy/demo/local.sh.
#
#   demo.sh setup         create a user, a policy and keys, wait for the devices, and print what to try
#   demo.sh device NAME   run a Tailscale client that joins with the key for NAME
set -eu

keys=${KEYS:-/demo}                        # the directory of the keys
state=${STATE:-/var/lib/tailscale}         # the state directory of the device
socket=${SOCKET:-/var/run/tailscale/tailscaled.sock}
on=${ON:-docker compose exec}              # runs a command on a device
remove=${REMOVE:-docker compose --file compose.yaml down --volumes}
console=${CONSOLE:-http://localhost:3000/admin/}

# await COMMAND... runs a command every half second until it succeeds, for at most two minutes.
await() {
  for _ in $(seq 240); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.5
  done
  echo "demo: gave up waiting for: $*" >&2
  exit 1
}

# keep FILE writes stdin to a file atomically, because other processes wait for it.
keep() { cat >"$keys/$1.new" && mv "$keys/$1.new" "$keys/$1"; }

online() { fairlead nodes show "$1" --output json | grep -q '"online": true'; }

setup() {
  await fairlead health --ready
  if [ ! -e "$keys/api.key" ]; then # at the first start
    fairlead users create alice >/dev/null
    fairlead policy set "$(dirname "$0")/policy.hujson" --reason "Policy of the demo" >/dev/null 2>&1
    fairlead preauthkeys create --user alice --description "demo: laptop" 2>/dev/null | keep laptop.key
    fairlead preauthkeys create --tags tag:web --description "demo: website" 2>/dev/null | keep website.key
    fairlead preauthkeys create --tags tag:db --description "demo: database" 2>/dev/null | keep database.key
    head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n' | keep cookie
    fairlead apikeys create --expiration 30d 2>/dev/null | keep api.key
  fi
  for name in laptop website database; do await online "$name"; done
  cat <<END

The demo is running: a server with a relay, the console, and three devices:
laptop (alice), website (tag:web) and database (tag:db).

  Console   $console
  API key   $(cat "$keys/api.key")

The policy lets alice reach the website, but not the database:

  $on laptop tailscale ping website
  $on laptop tailscale ping database    # fails with "no such host": laptop cannot even see it

Sign in to the console, open Policy, uncomment the last rule and look at its effect. Save it, or
choose "Try for 5 minutes". Then ping the database again: the change applies immediately.

To remove the demo:

  $remove

END
}

# The client needs neither root nor a network device. Without TLS, TS_DEBUG_USE_DERP_HTTP lets it use the relay, and
# it must start after the server and join only once: for two minutes after it connected to the server, a client connects again
# only with TLS.
device() {
  await test -s "$keys/$1.key"
  await fairlead health --ready --server "$SERVER_URL"
  case $SERVER_URL in http://*) export TS_DEBUG_USE_DERP_HTTP=1 ;; esac
  TS_NO_LOGS_NO_SUPPORT=true tailscaled --tun=userspace-networking --port=0 \
    --statedir="$state" --socket="$socket" >"$state/log" 2>&1 &
  daemon=$!
  trap 'kill "$daemon" 2>/dev/null' TERM INT
  await test -S "$socket"
  if [ ! -e "$state/joined" ]; then
    tailscale --socket="$socket" up --login-server="$SERVER_URL" --auth-key="file:$keys/$1.key" --hostname="$1" --timeout=2m
    touch "$state/joined"
  fi
  wait "$daemon" || true
}

case ${1-} in
  setup) setup ;;
  device) device "$2" ;;
  *) echo "usage: demo.sh setup | demo.sh device NAME" >&2; exit 2 ;;
esac
