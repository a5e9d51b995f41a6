#!/usr/bin/env bash
# Output functions of the scripts in this directory, which source it from the root of the repository.

# say STREAM COLOUR PREFIX TEXT... prints a line, in colour if the stream is a terminal.
say() {
  local stream=$1 colour=$2 prefix=$3
  shift 3
  if [ -t "$stream" ] && [ -z "${NO_COLOR:-}" ]; then prefix=$'\e['"${colour}m$prefix"$'\e[0m'; fi
  printf '%s %s\n' "$prefix" "$*" >&"$stream"
}
info() { say 1 32 '[INFO]' "$@"; }
warn() { say 2 33 '[WARN]' "$@"; }
error() { say 2 31 '[ERROR]' "$@"; }
die() { error "$@"; exit 1; }
wrong_usage() { error "$@"; usage >&2; exit 2; }
