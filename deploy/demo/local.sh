#!/usr/bin/env bash
# Runs the demo of compose.yaml without Docker, as processes of this user, until Ctrl-C. All files are in dist/demo, which
# is removed at the end.
# `make demo` builds what it needs: fairlead, fairlead-console, tailscale and tailscaled are in PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=$PWD/dist/demo
for port in 8080 9090 3000; do
  if (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; then
    echo "demo: another program listens on port $port: stop it first" >&2
    exit 1
  fi
done
umask 077
rm -rf "$dir"
mkdir -p "$dir"/{laptop,website,database}
cat >"$dir/config.yaml" <<END
server_url: http://127.0.0.1:8080
listen_addr: 127.0.0.1:8080
metrics_listen_addr: 127.0.0.1:9090
unix_socket: $dir/fairlead.sock
noise: {private_key_path: $dir/noise.key}
database: {type: sqlite, sqlite: {path: $dir/fairlead.sqlite}}
dns: {base_domain: demo.internal}
derp: {server: {stun_listen_addr: "127.0.0.1:3478"}}
END
# `on laptop tailscale status` runs a command on a device.
install -m 755 /dev/stdin "$dir/on" <<END
#!/bin/sh
[ "\${2-}" = tailscale ] || { echo "usage: \$0 laptop|website|database tailscale ARGUMENT..." >&2; exit 2; }
name=\$1
shift 2
exec '$(type -P tailscale)' --socket='$dir'/"\$name"/socket "\$@"
END

export FAIRLEAD_CONFIG=$dir/config.yaml KEYS=$dir SERVER_URL=http://127.0.0.1:8080
stop() {
  trap '' INT TERM EXIT
  jobs -p | xargs --no-run-if-empty kill 2>/dev/null || true
  wait
  rm -rf "$dir"
  echo "demo: stopped and removed"
}
trap stop EXIT
trap 'exit 0' INT TERM
fairlead serve 2>"$dir/server.log" &
server=$!
until fairlead health --ready >/dev/null 2>&1; do
  kill -0 $server 2>/dev/null || { tail -n 3 "$dir/server.log" >&2; echo "demo: the server does not start" >&2; exit 1; }
  sleep 0.2
done
for name in laptop website database; do
  STATE=$dir/$name SOCKET=$dir/$name/socket deploy/demo/demo.sh device "$name" &
done
ON=dist/demo/on REMOVE="press Ctrl-C here" CONSOLE=http://127.0.0.1:3000/admin/ deploy/demo/demo.sh setup
FAIRLEAD_CONSOLE_COORDINATOR_URL=http://127.0.0.1:8080 FAIRLEAD_CONSOLE_LISTEN_ADDR=127.0.0.1:3000 \
  FAIRLEAD_CONSOLE_COOKIE_SECRET_FILE=$dir/cookie fairlead-console serve 2>"$dir/console.log" &
wait
