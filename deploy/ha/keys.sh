#!/bin/sh
# Creates the keys of the relays and the devices of deploy/compose/ha.yaml on the server, once, in the volume /demo.
set -eu
umask 077

# keep FILE COMMAND... writes the output of a command to a file, unless the file exists.
keep() {
  file=/demo/$1
  shift
  [ -s "$file" ] || { "$@" >"$file.new" && mv "$file.new" "$file"; }
}

for _ in $(seq 240); do
  fairlead health --ready >/dev/null 2>&1 && break
  sleep 0.5
done
keep user fairlead users create alice
for name in relay-1 relay-2; do keep $name.key fairlead relays create $name --region ha --region-name "HA trial"; done
for name in laptop website; do keep $name.key fairlead preauthkeys create --user alice --description "HA trial: $name"; done
