#!/usr/bin/env bash
# Runs b_eff over three hosts that are network namespaces of this one: to see hosts, numbering and the way over TCP
# without a cluster. Times mean little, because all hosts share this machine's cores.
#
#   scripts/cluster.sh [-n RANKS] [-r] [-t SECONDS] [-x PROGRAM] -- ARGS...
#
#   -n RANKS     ranks, 6 unless given, spread evenly
#   -r           numbered round-robin over the hosts; neighbouring ranks share a host unless given
#   -t SECONDS   longest time, 600 unless given
#   -x PROGRAM   runs PROGRAM ARGS in place of `beff-raw comm ARGS`
#
# Needs root, iproute2 and util-linux. The MPI is that of the environment (scripts/env.sh), MPICH if there is none.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

hosts=3
net=10.77.0 # nobody outside of the namespaces sees it

usage() { die "$1" "scripts/cluster.sh [-n RANKS] [-r] [-t SECONDS] [-x PROGRAM] -- ARGS..."; }

# whole OPTION WORD: a number from 1.
whole() {
    case $2 in '' | 0* | *[!0-9]*) usage "$1 $2: give a whole number from 1" ;; esac
}

ranks=6 round_robin=no limit=600 program=
while getopts :n:rt:x: option; do
    case $option in
    n) ranks=$OPTARG && whole -n "$ranks" ;;
    r) round_robin=yes ;;
    t) limit=$OPTARG && whole -t "$limit" ;;
    x) program=$OPTARG ;;
    *) usage "-$OPTARG: no such option, or its value is missing" ;;
    esac
done
shift $((OPTIND - 1))

[ "$(id -u)" -eq 0 ] || die "network namespaces can be made by root alone" "run it as root"
for command in ip nsenter unshare setpriv mount; do
    have "$command" || die "$command is missing" "install iproute2 and util-linux"
done
if [ -z "${BEFF_MPIRUN:-}" ]; then eval "$("$root/scripts/env.sh" mpich)"; fi
if [ -z "${BEFF_MPI_NAME:-}" ]; then die "BEFF_MPIRUN is set and BEFF_MPI_NAME is not" "eval \"\$(scripts/env.sh mpich)\""; fi
if [ -z "$program" ]; then
    program=${CARGO_TARGET_DIR:-$root/target}/release/beff-raw
    [ -x "$program" ] || die "$program is not there" "build it: cargo build --release"
    set -- comm "$@"
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/beff-cluster.XXXXXX")
pids=() # one process holds the namespaces of a host; the last one those of the switch

# inside HOST CMD...: in all namespaces of a host, from 0; the switch is number $hosts.
inside() {
    local pid=${pids[$1]}
    shift
    nsenter -t "$pid" -n -u -i -m -- "$@"
}

# Only what this script started: whatever is left in namespaces that it made, then those who hold them. A namespace goes
# away, with its interfaces and mounts, when nobody is in it any more.
down() {
    trap - EXIT
    local pid own link
    for pid in "${pids[@]}"; do
        own=$(readlink "/proc/$pid/ns/net" 2>/dev/null) || continue
        for link in /proc/[0-9]*/ns/net; do
            [ "$(readlink "$link" 2>/dev/null)" = "$own" ] || continue
            link=${link#/proc/}
            kill -KILL "${link%%/*}" 2>/dev/null || true
        done
    done
    rm -rf "$dir"
}
trap down EXIT
trap 'exit 130' INT TERM HUP

# hold NAME: starts what holds new namespaces. It dies with this script, even if that gets a SIGKILL.
hold() {
    local before pid tries
    before=$(readlink /proc/self/ns/net)
    setpriv --pdeathsig KILL unshare -n -u -i -m --propagation private sleep infinity \
        </dev/null >/dev/null 2>"$dir/trouble" &
    pid=$!
    disown "$pid" # its end is no news
    for ((tries = 0; tries < 250; tries++)); do
        kill -0 "$pid" 2>/dev/null || die "a host cannot be made: $(cat "$dir/trouble")" "containers often forbid it"
        # The shell, setpriv and unshare come before; namespaces are all there when it sleeps.
        if [ "$(cat "/proc/$pid/comm")" = sleep ] && [ "$(readlink "/proc/$pid/ns/net")" != "$before" ]; then
            pids+=("$pid")
            echo "$pid" >"$dir/$1"
            inside $((${#pids[@]} - 1)) ip link set lo up
            return 0
        fi
        sleep 0.02
    done
    kill -KILL "$pid"
    die "a host was not there after 5 s"
}

# Shared memory and names of a host are its own, and so is what /sys says of interfaces.
furnish() {
    local groups=$dir/groups
    inside "$1" mount -t tmpfs tmpfs /dev/shm
    inside "$1" mount --bind "$dir/hosts" /etc/hosts
    mkdir -p "$groups"
    inside "$1" mount --rbind /sys/fs/cgroup "$groups"
    inside "$1" mount -t sysfs sysfs /sys
    inside "$1" mount --rbind "$groups" /sys/fs/cgroup
}

names=() # unlike those of any other run, because launchers name files in /tmp after them
echo "127.0.0.1 localhost" >"$dir/hosts"
for ((i = 0; i < hosts; i++)); do
    names+=("beff$$-$((i + 1))")
    echo "$net.$((i + 1)) ${names[i]}" >>"$dir/hosts"
done
for name in "${names[@]}" switch; do hold "$name"; done
inside "$hosts" ip link add bridge0 type bridge
inside "$hosts" ip link set bridge0 up
for ((i = 0; i < hosts; i++)); do
    inside "$hosts" ip link add "port$i" type veth peer name eth0 netns "${pids[i]}"
    inside "$hosts" ip link set "port$i" master bridge0 up
    inside "$i" ip addr add "$net.$((i + 1))/24" dev eth0
    inside "$i" ip link set eth0 up
    inside "$i" sh -c 'echo "$1" >/proc/sys/kernel/hostname' sh "${names[i]}"
    furnish "$i"
done

# What launchers use in place of ssh: OPTIONS HOST WORDS, the words joined for a shell.
cat >"$dir/agent" <<EOS
#!/bin/sh
while :; do
    case \$1 in
    -l | -p | -o | -i) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
host=\$1
shift
pid=\$(cat "$dir/\$host") || exit 255
exec nsenter -t "\$pid" -n -u -i -m -- /bin/sh -c "cd '\$PWD' && \$*"
EOS
chmod +x "$dir/agent"

read -ra launch <<<"$BEFF_MPIRUN"
each=$(((ranks + hosts - 1) / hosts))
slots=$(printf ",%s:$each" "${names[@]}")
case $BEFF_MPI_NAME in
mpich)
    launch+=(-launcher ssh -launcher-exec "$dir/agent" -iface eth0)
    if [ "$round_robin" = yes ]; then
        slots=$(printf ",%s" "${names[@]}")
        launch+=(-ppn 1)
    fi
    launch+=(-hosts "${slots#,}")
    ;;
openmpi)
    launch+=(--host "${slots#,}")
    if [ "$round_robin" = yes ]; then launch+=(--map-by node); fi
    # Open MPI 4 reads the first of each, PRRTE of Open MPI 5 the second.
    export OMPI_MCA_plm_rsh_agent=$dir/agent PRTE_MCA_plm_ssh_agent=$dir/agent
    export OMPI_MCA_oob_tcp_if_include=eth0 PRTE_MCA_oob_tcp_if_include=eth0
    export OMPI_MCA_btl_tcp_if_include=eth0
    ;;
*) die "$BEFF_MPI_NAME: only MPICH and Open MPI are known here" ;;
esac

# UCX sees that there is one kernel and would go through its memory from host to host: TCP is the only way here. Within a
# host MPICH and Open MPI use memory of their own.
export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 FI_TCP_IFACE=eth0

mkdir "$dir/tmp"
export TMPDIR=$dir/tmp
say "$ranks ranks on ${names[*]}, $BEFF_MPI_NAME"
status=0
# On the first host, as on a cluster.
bounded "$limit" nsenter -t "${pids[0]}" -n -u -i -m -- \
    /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "${launch[@]}" -n "$ranks" "$program" "$@" || status=$?
for ((i = 0; i < hosts; i++)); do
    say "${names[i]}: $(inside "$i" cat /sys/class/net/eth0/statistics/tx_bytes) bytes sent over eth0"
done
exit "$status"
