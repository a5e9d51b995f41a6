#!/usr/bin/env bats
# Tests what scripts/setup.sh does before it needs Docker. What it sets up is tested in internal/test/deploytest.

bats_require_minimum_version 1.5.0

setup() {
  # Use a copy, so that nothing is written next to the script, and a Docker that answers and does nothing.
  mkdir -p "$BATS_TEST_TMPDIR/bin" "$BATS_TEST_TMPDIR/scripts"
  cp "$BATS_TEST_DIRNAME"/../{setup,lines,check}.sh "$BATS_TEST_TMPDIR/scripts/"
  cd "$BATS_TEST_TMPDIR" || exit
  # shellcheck disable=SC2016 # of the script
  printf '#!/bin/sh\n[ "$1" != image ] || exit 1\n[ "$2" != build ] || exit 9\n' >bin/docker
  chmod 755 bin/docker
  PATH=$PWD/bin:$PATH
  unset NO_COLOR
}

@test "help is printed" {
  run -0 scripts/setup.sh --help
  [[ $output == Usage:* ]]
}

@test "wrong usage fails with status 2 and says how it is used" {
  for args in --nonsense --domain "--dev --domain x.test" "--domain x.test --email a@x.test --cert c" "--domain -x --email a@x.test" \
    "--domain x.test --email nobody" "--domain x.test" ""; do
    # shellcheck disable=SC2086 # words
    run -2 scripts/setup.sh $args </dev/null
    [[ ${lines[0]} == '[ERROR] '* && $output == *Usage:* ]]
  done
}

@test "a missing Docker is named" {
  printf '#!/bin/sh\nexit 1\n' >bin/docker
  run -1 scripts/setup.sh --dev
  [[ $output == '[ERROR] Docker does not respond'* ]]
}

@test "lines are coloured on a terminal only" {
  run -2 scripts/setup.sh --nonsense
  [[ $output != *$'\e['* ]]
  run script --quiet --return --command 'scripts/setup.sh --nonsense' /dev/null
  [[ $output == $'\e[31m[ERROR]\e[0m '* ]]
  NO_COLOR=1 run script --quiet --return --command 'scripts/setup.sh --nonsense' /dev/null
  [[ $output != *$'\e['* ]]
}

@test "the questions are asked on a terminal" {
  run script --quiet --return --command scripts/setup.sh /dev/null <<<$'mesh.example.test\nops@example.test\n'
  grep -qx DOMAIN=mesh.example.test .env
  grep -qx ACME_EMAIL=ops@example.test .env
  grep -qx COMPOSE_PROFILES=acme .env
}

@test ".env is private, complete and kept" {
  run scripts/setup.sh --domain mesh.example.test --email ops@example.test
  [ "$(stat -c %a .env)" = 600 ]
  grep -Eqx 'POSTGRES_PASSWORD=[A-Za-z0-9]{32}' .env
  grep -Eqx 'GRAFANA_PASSWORD=[A-Za-z0-9]{32}' .env
  grep -qx COMPOSE_FILE=deploy/compose/base.yaml:deploy/compose/postgres.yaml:deploy/compose/prod.yaml:deploy/compose/relay.yaml .env
  echo PROXY_RATE_LIMIT=on >>.env
  sed -i 's/relay.yaml$/relay.yaml:own.yaml/; s/^COMPOSE_PROFILES=.*/COMPOSE_PROFILES=monitoring,acme/' .env
  cp .env before
  run scripts/setup.sh
  diff <(sort before) <(sort .env)
}

@test "a Grafana that may have started keeps its password" {
  run scripts/setup.sh --dev
  sed -i '/^GRAFANA_PASSWORD=/d; s/^COMPOSE_PROFILES=.*/COMPOSE_PROFILES=monitoring,grafana/' .env
  run scripts/setup.sh --dev
  run ! grep -q GRAFANA_PASSWORD .env
}

@test "development leaves PostgreSQL out when told" {
  run scripts/setup.sh --dev --sqlite
  grep -qx COMPOSE_FILE=deploy/compose/base.yaml:deploy/compose/dev.yaml:deploy/compose/relay.yaml .env
  run ! grep -q POSTGRES_PASSWORD .env
  run -9 scripts/setup.sh --dev
  grep -qx COMPOSE_FILE=deploy/compose/base.yaml:deploy/compose/dev.yaml:deploy/compose/relay.yaml .env
}

@test "the relay's port is public in production only, and wherever told" {
  run scripts/setup.sh --dev
  grep -qx RELAY_PUBLISH=127.0.0.1:3478 .env
  run scripts/setup.sh --domain mesh.example.test --email ops@example.test
  grep -qx RELAY_PUBLISH=0.0.0.0:3478 .env
  run scripts/setup.sh --dev
  grep -qx RELAY_PUBLISH=127.0.0.1:3478 .env
  run scripts/setup.sh --domain mesh.example.test --email ops@example.test
  sed -i 's/^RELAY_PUBLISH=.*/RELAY_PUBLISH=127.0.0.1:3478/' .env # as set by an operator
  run scripts/setup.sh --dev
  grep -qx RELAY_PUBLISH=127.0.0.1:3478 .env
  # If other machines can reach the development server, they need the relay too.
  sed -i 's/^RELAY_PUBLISH=.*/PROXY_DEV_PUBLISH=0.0.0.0:8000/' .env
  run scripts/setup.sh --dev
  run ! grep RELAY_PUBLISH=127 .env
  echo RELAY_PUBLISH=0.0.0.0:3478 >>.env
  sed -i 's/^RELAY_PUBLISH=.*/RELAY_PUBLISH=0.0.0.0:3479/' .env
  run scripts/setup.sh --dev
  grep -qx RELAY_PUBLISH=0.0.0.0:3479 .env
}

@test "PostgreSQL is not left out of a deployment that has it" {
  run scripts/setup.sh --dev
  run -1 scripts/setup.sh --dev --sqlite
  [[ $output == *'stores its data in PostgreSQL'* ]]
}

@test "the check wants a deployment" {
  run -1 scripts/setup.sh --check
  [[ $output == *'.env is missing: run scripts/setup.sh'* ]]
}

@test "a setting that the environment has otherwise is an error" {
  run scripts/setup.sh --dev
  POSTGRES_PASSWORD=another run -1 scripts/setup.sh
  [[ $output == *'[ERROR] POSTGRES_PASSWORD has different values in the environment and in .env'* ]]
  COMPOSE_FILE=elsewhere.yaml run -1 scripts/setup.sh --dev
  [[ $output == *'[ERROR] COMPOSE_FILE has different values'* ]]
}

@test "CDPATH leads to no other directory" {
  mkdir -p other/scripts
  CDPATH=$PWD/other run scripts/setup.sh --dev
  [ -e .env ]
  [ ! -e other/.env ]
}

@test "no secret is an argument of a command" {
  for tool in grep sed head tr cut mv docker; do
    # shellcheck disable=SC2016 # for the shell that runs it
    printf '#!/bin/sh\necho "$0 $*" >>"%s/arguments"\nexec %s "$@"\n' "$PWD" "$(command -v $tool)" >"$BATS_TEST_TMPDIR/$tool"
    chmod 755 "$BATS_TEST_TMPDIR/$tool"
  done
  PATH=$BATS_TEST_TMPDIR:$PATH run scripts/setup.sh --dev
  password=$(sed -n 's/^POSTGRES_PASSWORD=//p' .env)
  [ "${#password}" = 32 ]
  grep -q '/docker ' arguments
  run ! grep -F "$password" arguments
}

# docker_with_images IMAGE_COMMIT simulates that all images exist, built from that commit; building exits with status 9.
docker_with_images() {
  # shellcheck disable=SC2016 # of the script
  printf '#!/bin/sh\n[ "$1" != inspect ] || echo "%s"\n[ "$2" != build ] || exit 9\n[ "$1" != run ] || exit 8\n' "$1" >bin/docker
  [ -e .git ] || git init --quiet
  git -c user.name=t -c user.email=t@example.test commit --quiet --allow-empty --message=any
}

@test "images of another commit are built again, and kept" {
  docker_with_images another
  run -9 scripts/setup.sh --dev
  [[ $output == *'previous images are kept under the tag dev-before'* ]]
  [[ $output == *'building images: server console proxy '* ]]
}

@test "only images that are missing are built beside those kept for a rollback" {
  docker_with_images another
  # shellcheck disable=SC2016 # of the script
  printf '#!/bin/sh\ncase "$*" in *"inspect fairlead/proxy"*) exit 1;; esac\n[ "$2" != build ] || { echo "$@" >built; exit 9; }\n' >bin/docker
  echo IMAGE_TAG=dev-before >>.env
  run -9 scripts/setup.sh --dev
  [ "$(cat built)" = 'compose build proxy' ]
  [[ $output == *'IMAGE_TAG in .env selects the previous images'* ]]
}

@test "images of this commit, those kept for a rollback, and those of an unpacked archive are not built again" {
  docker_with_images another
  sed -i "s/another/$(git rev-parse HEAD)/" bin/docker
  run -8 scripts/setup.sh --dev
  echo IMAGE_TAG=dev-before >>.env
  docker_with_images another
  run -8 scripts/setup.sh --dev
  # Unpacked in a subdirectory of another repository's clone.
  mkdir unpacked
  cp -r scripts unpacked
  run -8 unpacked/scripts/setup.sh --dev
}

@test "a container that does not start is not called a problem of config.yaml" {
  # shellcheck disable=SC2016 # of the script
  printf '#!/bin/sh\n[ "$1" != run ] || cat >/dev/null\n[ "$1 $2" != "compose run" ] || { cat reason >&2; exit 1; }\n' >bin/docker
  echo 'volume fairlead_data was created for another project' >reason
  run -1 scripts/setup.sh --dev
  [[ $output == *'created for another project'*'[ERROR] config.yaml could not be checked'* ]]
  echo 'failed to parse configuration' >reason
  run -1 scripts/setup.sh --dev
  [[ $output == *'[ERROR] config.yaml has the problems shown above; fix them (as root), then run this script again' ]]
}

@test "links are not replaced" {
  for file in .env config.yaml console.yaml; do
    echo kept >elsewhere
    ln -s elsewhere "$file"
    run -1 scripts/setup.sh --dev
    [[ $output == "[ERROR] $file is a symbolic link"* ]]
    [ "$(cat "$file")" = kept ]
    rm "$file"
  done
}
