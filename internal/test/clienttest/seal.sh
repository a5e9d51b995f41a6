#!/bin/sh
# Confines clients on the host's own network to loopback. A client that loses its
# server asks public DNS servers; under this group the kernel rejects the packets.
#
#   seal.sh                 install the firewall rules; safe to repeat
#   seal.sh check           print the counters; fail if a rule is missing or a packet got out
#   seal.sh COMMAND [ARG]…  install the rules and run a command under the group
#
# The rules apply to one group that nothing else uses, so they stay. Needs root.
set -eu
group=64123

both() { iptables -w "$@" && ip6tables -w "$@"; }
matches="-m owner --gid-owner $group ! -o lo"

# The second rule has no target. It counts packets that get out in spite of the first.
install_rules() {
  for table in iptables ip6tables; do
    # shellcheck disable=SC2086 # words of a rule
    {
      $table -w -C OUTPUT $matches -j REJECT 2>/dev/null || $table -w -I OUTPUT $matches -j REJECT
      $table -w -t mangle -C POSTROUTING $matches 2>/dev/null || $table -w -t mangle -I POSTROUTING $matches
    }
  done
}

# Prints the number of packets that matched the rules of a chain, over IPv4 and IPv6.
count() {
  both -t "$1" -nvxL "$2" | awk -v group="$group" '
    /owner GID match/ && $0 ~ "owner GID match " group "( |$)" { rules++; packets += $1 }
    END { if (rules < 2) exit 1; print packets }'
}

check() {
  if ! rejected=$(count filter OUTPUT) || ! sent=$(count mangle POSTROUTING); then
    echo "seal: a rule for group $group is missing" >&2
    exit 1
  fi
  echo "rejected $rejected sent $sent"
  [ "$sent" = 0 ] || {
    echo "seal: $sent packets left this machine" >&2
    exit 1
  }
}

case ${1-} in
check) check ;;
*)
  # Several test processes may start at the same time.
  exec 9>"${TMPDIR:-/tmp}/fairlead-seal.lock"
  flock 9
  install_rules
  exec 9>&-
  [ $# = 0 ] || exec setpriv --regid "$group" --clear-groups "$@"
  ;;
esac
