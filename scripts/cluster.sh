#!/usr/bin/env bash
# Runs beff-raw over three hosts that are namespaces of this one: to see hosts, numbering, messages over TCP and files of several
# hosts without a cluster. Times mean little, because all hosts share this machine's cores.
#
#   scripts/cluster.sh [OPTIONS] -- io|imb|comm|replay ARGS...
#
#   -n RANKS     ranks, 6 unless given, spread evenly
#   -r           numbered round-robin over the hosts; neighbouring ranks share a host unless given
#   -t SECONDS   longest time, 600 unless given
#   -d DIR       the directory that is /mnt on every host; a new one in TMPDIR (/var/tmp) unless given, removed at the end
#   -x PROGRAM   runs PROGRAM ARGS in place of beff-raw of the release build
#
# io, imb and replay get `--path /mnt` unless ARGS has a --path. Needs root, iproute2 and util-linux. The MPI is that of the
# environment (scripts/env.sh), MPICH if there is none; `scripts/setup.sh cluster` installs an MPICH that does not hang over TCP.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/cluster/hosts.sh
. "$root/scripts/cluster/hosts.sh"

usage() { die "$1" "scripts/cluster.sh [-n RANKS] [-r] [-t SECONDS] [-d DIR] [-x PROGRAM] -- io|imb|comm|replay ARGS..."; }

# whole OPTION WORD: a number from 1.
whole() {
    case $2 in '' | 0* | *[!0-9]*) usage "$1 $2: give a whole number from 1" ;; esac
}

ranks=6 round_robin=no limit=600 program='' shared=''
arguments=("$@")
while getopts :n:rt:d:x: option; do
    case $option in
    n) ranks=$OPTARG && whole -n "$ranks" ;;
    r) round_robin=yes ;;
    t) limit=$OPTARG && whole -t "$limit" ;;
    d)
        shared=$OPTARG
        [ -d "$shared" ] || usage "-d $shared: no such directory"
        ;;
    x) program=$OPTARG ;;
    *) usage "-$OPTARG: no such option, or its value is missing" ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$program" ]; then
    case ${1:-} in
    io | imb | comm | replay) ;;
    *) usage "${1:-nothing} is no benchmark" ;;
    esac
fi

own_processes "$0" "${arguments[@]}"
hosts_up "$shared"
if [ -z "${BEFF_MPIRUN:-}" ]; then eval "$("$root/scripts/env.sh" mpich)"; fi
program=${program:-${CARGO_TARGET_DIR:-$root/target}/release/beff-raw}
[ -x "$program" ] || die "$program is not there" "build it: cargo build --release"
choose_mpi "$program"
case ${1:-} in
io | imb | replay)
    case " $* " in *" --path"[\ =]*) ;; *) set -- "$@" --path /mnt ;; esac
    ;;
esac

say "$ranks ranks on ${names[*]}, ${launcher[0]}"
status=0
launch "$ranks" "$round_robin" "$limit" "$program" "$@" || status=$?
for ((i = 0; i < hosts; i++)); do
    say "${names[i]}: $(inside "$i" cat /sys/class/net/eth0/statistics/tx_bytes) bytes sent over eth0"
done
exit "$status"
