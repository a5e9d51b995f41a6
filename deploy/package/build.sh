#!/usr/bin/env bash
# Builds the files of a release for each architecture. `make packages` and `make release` call it, after the console's
# pages were built. Builds are reproducible: the same commit, Go and Node.js give the same bytes.
#
#   build.sh packages DIR     .deb and .rpm
#   build.sh release DIR      the same, and archives, images, the Helm chart, SBOMs, checksums and provenance
#   build.sh chart DIR        only the Helm chart
#   build.sh version VERSION  print VERSION in the form that packages use
#   build.sh rename DIR       rename the files in DIR as those of a release
#
# Environment: VERSION (as printed by git describe), COMMIT, BUILD_TIME, LDFLAGS, NFPM, and ARCHITECTURES (default amd64
# and arm64). The provenance also names BUILDER, INVOCATION and BASE_IMAGES, if they are set.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
export LC_ALL=C TZ=UTC VERSION

# v1.2.0-rc.1 sorts before 1.2.0, and the 14th commit after a tag sorts after it: dpkg and rpm use ~ and + for that.
# Without a tag, versions can only be ordered by time.
package_version() {
  local version=${1#v} after='' dirty=''
  [[ $version != *-dirty ]] || { version=${version%-dirty} dirty=+dirty; }
  [[ ! $version =~ ^(.+)-([0-9]+)-(g[0-9a-f]+)$ ]] || { version=${BASH_REMATCH[1]} after=+${BASH_REMATCH[2]}.${BASH_REMATCH[3]}; }
  if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
    version=0~$(date -d "$BUILD_TIME" +%Y%m%d%H%M%S).$version
  fi
  echo "${version/-/\~}$after$dirty"
}

# Tags of images and versions of charts follow Semantic Versioning, which knows neither ~ nor a version without numbers.
semantic_version() {
  local version=${1#v}
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || version=0.0.0-g$version
  echo "$version"
}

# stage ARCH prepares the files for archives and packages.
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

# describe PROGRAM [OPTION...] writes the SBOM, licences and changelog of a program.
describe() {
  local name=$1
  go run ./deploy/package/sbom -version "$PACKAGE_VERSION" -time "$BUILD_TIME" "${@:2}" \
    -sbom "$STAGE/$name.cdx.json" -licences "$STAGE/$name.licences.txt" "$STAGE/$name"
  cat >"$STAGE/$name.changelog.Debian" <<END
$name ($PACKAGE_VERSION-1) stable; urgency=medium

  * See changelog.gz in this directory.

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

# packed DIR NAME prints the archive of DIR/NAME.
packed() {
  tar --create --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="$BUILD_TIME" --directory="$1" "$2" | gzip -9n
}

archive() {
  local name=fairlead-$PACKAGE_VERSION-linux-$1 root
  root=$STAGE/$name
  mkdir "$root"
  cp -r LICENSE README.md CHANGELOG.md deploy/{config,console}.example.yaml deploy/{fairlead,fairlead-console}.service \
    "$STAGE"/{fairlead,fairlead-console,man,completions} "$STAGE"/*.licences.txt.gz "$root"
  chmod -R u=rwX,go=rX "$root"
  packed "$STAGE" "$name" >"$out/$name.tar.gz"
  cp "$STAGE/fairlead.cdx.json" "$out/$name.cdx.json"
  cp "$STAGE/fairlead-console.cdx.json" "$out/fairlead-console-${name#fairlead-}.cdx.json"
}

# images writes an archive for each image, and the list of their digests.
images() {
  local image arch programs
  declare -A program=([server]=fairlead [console]=fairlead-console)
  for image in server console; do
    programs=()
    for arch in $architectures; do programs+=("$arch=dist/stage/$arch/${program[$image]}"); done
    go run ./deploy/package/image -image $image -name "$registry/$image" -tag "$SEMANTIC_VERSION" -version "$VERSION" \
      -revision "$COMMIT" -created "$BUILD_TIME" -out "$out/fairlead-$image-$SEMANTIC_VERSION.oci.tar" "${programs[@]}"
  done >"$out/fairlead-$SEMANTIC_VERSION-images.txt"
}

# chart packs the Helm chart with the version and with the names of the published images.
chart() {
  local stage=dist/stage/chart
  rm -rf $stage
  mkdir -p $stage
  cp --recursive --dereference deploy/helm/fairlead $stage/
  rm -r $stage/fairlead/.helmignore $stage/fairlead/examples
  sed -i "s/^version: .*/version: $SEMANTIC_VERSION/; s/^appVersion: .*/appVersion: $SEMANTIC_VERSION/" $stage/fairlead/Chart.yaml
  sed -i "s|repository: fairlead/|repository: $registry/|" $stage/fairlead/values.yaml
  chmod -R u=rwX,go=rX $stage
  packed $stage fairlead >"$out/fairlead-chart-$SEMANTIC_VERSION.tgz"
}

# rename DIR removes ~ from the names of files. GitHub would replace it, and the names would differ from those in SHA256SUMS.
rename() {
  local file
  for file in "$1"/*; do
    [[ ${file##*/} != *~* ]] || mv "$file" "$1/$(basename "$file" | tr '~' -)"
  done
}

case ${1-} in
  version) package_version "$2"; exit ;;
  rename) rename "$2"; exit ;;
esac

: "${VERSION:?}" "${BUILD_TIME:?}"
registry=ghcr.io/fairlead-mesh
out=$2
SEMANTIC_VERSION=$(semantic_version "$VERSION")
if [ "$1" = chart ]; then
  mkdir -p "$out"
  chart
  exit
fi

: "${LDFLAGS:?}" "${COMMIT:?}" "${NFPM:?}"
# The caller's own build settings must not affect these builds.
unset GOFLAGS GOEXPERIMENT GOAMD64 GOARM64
# The linker would leave out debug information anyway. These are also the flags of CI, so CI compiles each package once.
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -gcflags=all=-dwarf=false"
[ -e console/web/dist/index.html ] || { echo "build.sh: the pages of the console are missing: run make web" >&2; exit 1; }
PACKAGE_VERSION=$(package_version "$VERSION")
SOURCE_DATE_EPOCH=$(date -d "$BUILD_TIME" +%s)
export PACKAGE_VERSION SOURCE_DATE_EPOCH
rm -rf "$out"
mkdir -p "$out"
# Generates man pages and completions, which are the same for all architectures.
native=dist/stage/native
go build -ldflags "$LDFLAGS" -o $native ./cmd/fairlead
architectures=${ARCHITECTURES:-amd64 arm64}
for arch in $architectures; do
  export STAGE=dist/stage/$arch
  stage "$arch"
  pack "$arch"
  if [ "$1" = release ]; then archive "$arch"; fi
done
if [ "$1" = release ]; then
  images
  chart
  rename "$out"
  (cd "$out" && sha256sum -- * >SHA256SUMS)
  # Not in SHA256SUMS, because it says who built the files, and they are the same whoever did.
  go run ./deploy/package/provenance -version "$VERSION" -commit "$COMMIT" -architectures "$architectures" \
    -builder "${BUILDER:-https://github.com/fairlead-mesh/fairlead/blob/main/docs/release.md#make-release}" \
    -invocation "${INVOCATION:-}" -bases "${BASE_IMAGES:-}" -images "$out/fairlead-$SEMANTIC_VERSION-images.txt" \
    "$out/SHA256SUMS" >"$out/fairlead-$SEMANTIC_VERSION.provenance.json"
fi
ls "$out"
