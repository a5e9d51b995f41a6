#!/usr/bin/env bash
# Makes what a release consists of, for each architecture; `make packages` and
# `make release` call it. The same commit and the same Go give the same bytes,
# wherever and whenever it runs.
#
#   build.sh packages DIR     .deb and .rpm
#   build.sh release DIR      these, archives, the list of all parts (SBOM), checksums
#   build.sh version VERSION  VERSION as packages spell it
#
# From the environment: VERSION (as git describe says it), BUILD_TIME, LDFLAGS, NFPM.
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
  GOOS=linux GOARCH=$1 go build -ldflags "$LDFLAGS" -o "$STAGE/fairlead" ./cmd/fairlead
  "$native" man --dir "$STAGE/man" >/dev/null
  "$native" completion bash >"$STAGE/completions/fairlead.bash"
  "$native" completion fish >"$STAGE/completions/fairlead.fish"
  "$native" completion zsh >"$STAGE/completions/_fairlead"
  go run ./deploy/package/sbom -version "$PACKAGE_VERSION" -time "$BUILD_TIME" \
    -sbom "$STAGE/sbom.cdx.json" -licences "$STAGE/licences.txt" "$STAGE/fairlead"
  cp CHANGELOG.md "$STAGE/changelog"
  cat >"$STAGE/changelog.Debian" <<END
fairlead ($PACKAGE_VERSION-1) stable; urgency=medium

  * What changed is told in changelog.gz beside this file.

 -- The Fairlead Authors <fairlead-mesh@users.noreply.github.com>  $(date -R -d "$BUILD_TIME")
END
  gzip -9n "$STAGE"/man/*.1 "$STAGE"/{licences.txt,changelog,changelog.Debian}
}

pack() {
  local format
  for format in deb rpm; do
    ARCH=$1 "$NFPM" package --config deploy/package/nfpm.yaml --packager $format --target "$out" >/dev/null
  done
}

archive() {
  local name=fairlead-$PACKAGE_VERSION-linux-$1 root
  root=$STAGE/$name
  mkdir "$root"
  cp -r LICENSE README.md CHANGELOG.md deploy/config.example.yaml deploy/fairlead.service \
    "$STAGE"/{fairlead,man,completions,licences.txt.gz} "$root"
  chmod -R u=rwX,go=rX "$root"
  tar --create --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="$BUILD_TIME" \
    --directory="$STAGE" "$name" | gzip -9n >"$out/$name.tar.gz"
  cp "$STAGE/sbom.cdx.json" "$out/$name.cdx.json"
}

if [ "${1-}" = version ]; then
  package_version "$2"
  exit
fi

: "${VERSION:?}" "${BUILD_TIME:?}" "${LDFLAGS:?}" "${NFPM:?}"
# What the caller has set for his own builds must not show in these.
unset GOFLAGS GOEXPERIMENT GOAMD64 GOARM64
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false"
PACKAGE_VERSION=$(package_version "$VERSION")
SOURCE_DATE_EPOCH=$(date -d "$BUILD_TIME" +%s)
export PACKAGE_VERSION SOURCE_DATE_EPOCH
out=$2
rm -rf "$out"
mkdir -p "$out"
# Writes manual and completions, which are the same for all.
native=dist/stage/native
go build -ldflags "$LDFLAGS" -o $native ./cmd/fairlead
for arch in amd64 arm64; do
  export STAGE=dist/stage/$arch
  stage "$arch"
  pack "$arch"
  if [ "$1" = release ]; then archive "$arch"; fi
done
if [ "$1" = release ]; then (cd "$out" && sha256sum -- * >SHA256SUMS); fi
ls "$out"
