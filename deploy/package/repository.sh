#!/usr/bin/env bash
# Makes package repositories for apt and dnf of the packages of a release:
#
#   repository.sh RELEASE DIR [EARLIER]
#
# RELEASE is the directory that build.sh filled, EARLIER one with .deb and .rpm of earlier releases, which stay available.
# DIR becomes the tree to publish. sign.sh signs it. Environment: BUILD_TIME. Needs dpkg and createrepo_c.
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
: "${BUILD_TIME:?}"
release=$1 dir=$2 earlier=${3-}
url=https://fairlead-mesh.github.io/fairlead/packages
command -v createrepo_c >/dev/null || { echo "repository.sh: install createrepo_c (Debian: createrepo-c)" >&2; exit 1; }

rm -rf "$dir"
mkdir -p "$dir/apt/pool" "$dir/rpm"
find "$release" ${earlier:+"$earlier"} -maxdepth 1 -name '*.deb' -exec cp -t "$dir/apt/pool" {} +
find "$release" ${earlier:+"$earlier"} -maxdepth 1 -name '*.rpm' -exec cp -t "$dir/rpm" {} +

(
  cd "$dir/apt"
  for arch in amd64 arm64; do
    list=dists/stable/main/binary-$arch/Packages
    mkdir -p "${list%/*}"
    for deb in pool/*_"$arch".deb; do
      [ -e "$deb" ] || continue
      dpkg-deb --field "$deb"
      printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$deb" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)"
    done >$list
    gzip -9nk $list
  done
  cd dists/stable
  {
    printf '%s\n' 'Origin: Fairlead' 'Label: Fairlead' 'Suite: stable' 'Codename: stable' "Date: $(date -R -d "$BUILD_TIME")" \
      'Architectures: amd64 arm64' 'Components: main' 'Description: Fairlead, a control server for Tailscale clients' 'SHA256:'
    for list in main/*/*; do
      echo " $(sha256sum "$list" | cut -d' ' -f1) $(stat -c %s "$list") $list"
    done
  } >../Release
  mv ../Release Release
)

createrepo_c --quiet --no-database --simple-md-filenames --general-compress-type=gz \
  --revision="$(date -d "$BUILD_TIME" +%s)" --set-timestamp-to-revision "$dir/rpm"

cat >"$dir/fairlead.sources" <<END
Types: deb
URIs: $url/apt
Suites: stable
Components: main
Signed-By: /etc/apt/keyrings/fairlead.asc
END
# The signed list of packages has their checksums, so the packages themselves need no signature.
cat >"$dir/fairlead.repo" <<END
[fairlead]
name=Fairlead
baseurl=$url/rpm
repo_gpgcheck=1
gpgcheck=0
gpgkey=$url/fairlead.asc
END
