#!/usr/bin/env bash
# Signs a release and its package repositories with the keys that the environment names:
#
#   sign.sh RELEASE REPOSITORY
#
#   MINISIGN_KEY_FILE  secret key of minisign, for the checksums and the provenance; MINISIGN_PASSWORD if it has one
#   OPENPGP_KEY_FILE   secret key of OpenPGP, for the repositories; OPENPGP_PASSWORD if it has one
#
# Without a key, what it would sign stays unsigned, and a message says so. SIGNED=required makes that an error.
set -euo pipefail
release=$1 repository=$2

unsigned() {
  echo "sign.sh: $1 NOT signed: $2 is not set (docs/release.md)" >&2
  [ "${SIGNED-}" != required ]
}

# The file with the checksums says which release it belongs to, so that nobody can pass off an old one as new.
minisigned() {
  local file
  for file in "$release"/SHA256SUMS "$release"/*.provenance.json; do
    minisign -S -s "$MINISIGN_KEY_FILE" -m "$file" -t "$(basename "$release"/*.provenance.json .provenance.json), file ${file##*/}" \
      <<<"${MINISIGN_PASSWORD-}" >/dev/null
  done
}

openpgp() {
  GNUPGHOME=$(mktemp -d)
  export GNUPGHOME
  trap 'gpgconf --kill gpg-agent || true; rm -rf "$GNUPGHOME"' EXIT # even if a command fails: it contains the key
  local gpg=(gpg --batch --quiet --yes --pinentry-mode loopback --passphrase-fd 0 --digest-algo SHA512) lists=$repository/apt/dists/stable
  "${gpg[@]}" --import "$OPENPGP_KEY_FILE" <<<"${OPENPGP_PASSWORD-}"
  "${gpg[@]}" --armor --detach-sign --output "$lists/Release.gpg" "$lists/Release" <<<"${OPENPGP_PASSWORD-}"
  "${gpg[@]}" --clearsign --output "$lists/InRelease" "$lists/Release" <<<"${OPENPGP_PASSWORD-}"
  "${gpg[@]}" --armor --detach-sign --output "$repository/rpm/repodata/repomd.xml.asc" "$repository/rpm/repodata/repomd.xml" \
    <<<"${OPENPGP_PASSWORD-}"
  gpg --batch --armor --export --output "$repository/fairlead.asc"
}

if [ -n "${MINISIGN_KEY_FILE-}" ]; then minisigned; else unsigned "checksums and provenance are" MINISIGN_KEY_FILE; fi
if [ -n "${OPENPGP_KEY_FILE-}" ]; then openpgp; else unsigned "the package repositories are" OPENPGP_KEY_FILE; fi
