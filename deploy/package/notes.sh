#!/usr/bin/env bash
# Prints the release notes of a tag: its section of CHANGELOG.md, with links that work outside the repository. Fails if the
# first section is about another version, or the tag has a form that build.sh does not expect. A release candidate has the
# notes of its release.
set -euo pipefail
tag=${1:?usage: notes.sh TAG}
if [[ ! $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]]; then
  echo "notes.sh: $tag is not a version such as v1.2.3 or v1.2.3-rc.1" >&2
  exit 1
fi
cd "$(dirname "$0")/../.."
version=${tag#v}
version=${version%%-*}
first=$(sed -n 's/^## //p' CHANGELOG.md | head -1)
if [ "$first" != "$version" ]; then
  echo "notes.sh: the first section of CHANGELOG.md is \"$first\", not \"$version\"" >&2
  exit 1
fi
repository=https://github.com/fairlead-mesh/fairlead
sed -n '/^## /,$ p' CHANGELOG.md | sed '1d; /^## /,$ d' | sed "s#](\([A-Za-z][^):]*\))#]($repository/blob/$tag/\1)#g"
printf '\n[How to verify these files](%s/blob/%s/docs/verify.md)\n' "$repository" "$tag"
