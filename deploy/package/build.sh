#!/usr/bin/env bash
# Makes what a release consists of, for each architecture; `make packages` and
# `make release` call it, with the pages of the console built. The same commit, Go
# and Node.js give the same bytes, wherever and whenever it runs.
#
#   build.sh packages DIR     .deb and .rpm
#   build.sh release DIR      these, archives, the list of all parts (SBOM), checksums
#   build.sh version VERSION  VERSION as packages spell it
#
# From the environment: VERSION (as git describe says it), BUILD_TIME, LDFLAGS, NFPM, and
# ARCHITECTURES, amd64 and arm64 unless told.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
export LC_ALL=C TZ=UTC

# v1.2.0-rc.1 comes before 1.2.0, and the 14th commit after it behind: dpkg and
# rpm order by ~ and +. Without a tag the time is all there is to order by.
package_version() {
  local version=${1#v} after='' dirty=''
  [[ $version != *-dirty ]] || { version=${version%-dirty} dirty=+dirty; }
  [[ ! $version =~ ^(.+)-([0-9]+)-(g[0-9a-f]+)$ ]] || { version=${BASH_REMATCH[1]} after=+${BASH_REMATCH[2]}.${BASH_REMATCH[3]}; }
  if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
    version=0~$(date -d "$BUILD_TIME" +%Y%m%d%H%M%S).$version
  fi
  echo "${version/-/\~}$after$dirty"
}

# stage ARCH lays out what archives and packages are made of.
stage() {
  rm -rf "$STAGE"
  mkdir -p "$STAGE/man" "$STAGE/completions"
  GOOS=linux GOARCH=$1 go build -ldflags "$LDFLAGS" -o "$STAGE/" ./cmd/fairlead ./cmd/fairlead-console
  "$native" man --dir "$STAGE/man" >/dev/null
  "$native" completion bash >"$STAGE/completions/fairlead.bash"
  "$native" completion fish >"$STAGE/completions/fairlead.fish"
  "$native" completion zsh >"$STAGE/completions/_fairlead"
  describe fairlead
  describe fairlead-console -npm console/web
  cp CHANGELOG.md "$STAGE/changelog"
  gzip -9n "$STAGE"/man/*.1 "$STAGE"/changelog
}

# describe PROGRAM [OPTION...] writes down what a program is made of.
describe() {
  local name=$1
  go run ./deploy/package/sbom -version "$PACKAGE_VERSION" -time "$BUILD_TIME" "${@:2}" \
    -sbom "$STAGE/$name.cdx.json" -licences "$STAGE/$name.licences.txt" "$STAGE/$name"
  cat >"$STAGE/$name.changelog.Debian" <<END
$name ($PACKAGE_VERSION-1) stable; urgency=medium

  * What changed is told in changelog.gz beside this file.

 -- The Fairlead Authors <fairlead-mesh@users.noreply.github.com>  $(date -R -d "$BUILD_TIME")
END
  gzip -9n "$STAGE/$name".{licences.txt,changelog.Debian}
}

pack() {
  local format config
  for config in nfpm nfpm-console; do
    for format in deb rpm; do
      ARCH=$1 "$NFPM" package --config deploy/package/$config.yaml --packager $format --target "$out" >/dev/null
    done
  done
}

archive() {
  local name=fairlead-$PACKAGE_VERSION-linux-$1 root
  root=$STAGE/$name
  mkdir "$root"
  cp -r LICENSE README.md CHANGELOG.md deploy/{config,console}.example.yaml deploy/{fairlead,fairlead-console}.service \
    "$STAGE"/{fairlead,fairlead-console,man,completions} "$STAGE"/*.licences.txt.gz "$root"
  chmod -R u=rwX,go=rX "$root"
  tar --create --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="$BUILD_TIME" \
    --directory="$STAGE" "$name" | gzip -9n >"$out/$name.tar.gz"
  cp "$STAGE/fairlead.cdx.json" "$out/$name.cdx.json"
  cp "$STAGE/fairlead-console.cdx.json" "$out/fairlead-console-${name#fairlead-}.cdx.json"
}

if [ "${1-}" = version ]; then
  package_version "$2"
  exit
fi

: "${VERSION:?}" "${BUILD_TIME:?}" "${LDFLAGS:?}" "${NFPM:?}"
# What the caller has set for his own builds must not show in these.
unset GOFLAGS GOEXPERIMENT GOAMD64 GOARM64
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
[ -e console/web/dist/index.html ] || { echo "build.sh: the console has no pages: make web" >&2; exit 1; }
PACKAGE_VERSION=$(package_version "$VERSION")
SOURCE_DATE_EPOCH=$(date -d "$BUILD_TIME" +%s)
export PACKAGE_VERSION SOURCE_DATE_EPOCH
out=$2
rm -rf "$out"
mkdir -p "$out"
# Writes manual and completions, which are the same for all.
native=dist/stage/native
go build -ldflags "$LDFLAGS" -o $native ./cmd/fairlead
for arch in ${ARCHITECTURES:-amd64 arm64}; do
  export STAGE=dist/stage/$arch
  stage "$arch"
  pack "$arch"
  if [ "$1" = release ]; then archive "$arch"; fi
done
if [ "$1" = release ]; then (cd "$out" && sha256sum -- * >SHA256SUMS); fi
ls "$out"
