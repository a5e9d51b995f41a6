#!/usr/bin/env bash
# Copies the packages of an earlier release, for repository.sh:
#
#   earlier.sh RELEASE KEY DIR
#
# RELEASE is a directory with the downloaded files, and KEY the public key of minisign. Only packages that the signed list of
# checksums contains are copied to DIR. sign.sh signs what is in the repositories, so a file that someone added to a release
# on GitHub must not get there.
set -euo pipefail
release=$1 key=$(realpath "$2")
mkdir -p "$3"
dir=$(realpath "$3")
cd "$release"
minisign -V -p "$key" -m SHA256SUMS
packages=$(grep -E '^[0-9a-f]{64}  [^/]+\.(deb|rpm)$' SHA256SUMS)
sha256sum --check --strict <<<"$packages"
cut -c 67- <<<"$packages" | xargs -d '\n' cp -t "$dir" --
