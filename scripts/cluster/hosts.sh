# shellcheck shell=bash
# Three hosts made of namespaces of this machine, and a login node, which holds the switch between them. Sourced after lib.sh.
#
# own_processes "$0" "$@"   first: the script goes on in a PID namespace of its own
# hosts_up [DIR]            sets `names`; DIR is mounted on /mnt of every host, a new directory unless given
# inside HOST CMD...        on host 0 to 2
# choose_mpi PROGRAM        the MPI of the environment (scripts/env.sh), MPICH if there is none
# launch RANKS ROUND_ROBIN SECONDS PROGRAM ARGS...   from the login node
#
# A host is a PID namespace too, with a /proc of its own: programs that exchange data through /proc/PID/fd of the same kernel
# would otherwise do so from host to host.

hosts=3
net=10.77.0 # nobody outside of the namespaces sees it
dir=${BEFF_CLUSTER_DIR:-}

# own_processes SCRIPT ARGS...: starts SCRIPT again as the first process of a PID namespace, and ends with its status. When that
# process ends, the kernel ends all others of the namespace, with their mounts and interfaces: nothing else has to be found and
# stopped. TERM and INT reach the script, which ends the benchmark as a user would; a second one ends everything at once.
own_processes() {
    local command status=0 signals=0
    if [ -n "$dir" ]; then
        # The kernel keeps signals without a handler from the first process of a namespace: this one is ready for them now.
        trap 'exit 130' INT TERM HUP
        mv "$dir/init.new" "$dir/init"
        return 0
    fi
    [ "$(id -u)" -eq 0 ] || die "network namespaces can be made by root alone" "run it as root"
    for command in ip nsenter unshare setpriv mount; do
        have "$command" || die "$command is missing" "install iproute2 and util-linux"
    done
    case ${TMPDIR:-} in *[!A-Za-z0-9/._+-]*) die "TMPDIR=$TMPDIR: launchers split names at blanks" "name a directory without them" ;; esac
    # shellcheck disable=SC2317 # called by the traps
    # `$!` is there as soon as the process is, whatever this shell is about to do.
    pass_on() {
        signals=$((signals + 1))
        if [ -z "${!:-}" ]; then exit 130; fi
        if [ "$signals" -gt 1 ] || ! { [ -s "$dir/init" ] && kill -TERM "$(cat "$dir/init")"; } 2>/dev/null; then
            kill -KILL "$!" 2>/dev/null || true
        fi
    }
    trap 'rm -rf "$dir"' EXIT
    trap pass_on INT TERM HUP
    dir=$(mktemp -d "${TMPDIR:-/var/tmp}/beff-cluster.XXXXXX")
    # /proc is still that of the machine: there this shell is found, unless it was killed before its end could be asked for, and
    # the number of the new process.
    # shellcheck disable=SC2016 # for the inner shell
    BEFF_CLUSTER_DIR=$dir BEFF_CLUSTER_OUTER=$$ setpriv --pdeathsig KILL \
        unshare --pid --mount --fork --kill-child=KILL --propagation private -- bash -c '[ -e "/proc/$BEFF_CLUSTER_OUTER" ] &&
            read -r pid _ </proc/self/stat && echo "$pid" >"$BEFF_CLUSTER_DIR/init.new" && mount -t proc proc /proc && exec "$@"' \
        bash "$@" <&0 &
    while kill -0 "$!" 2>/dev/null; do
        status=0
        wait "$!" || status=$?
    done
    trap '' INT TERM HUP
    exit "$status"
}

# inside HOST CMD...: in all namespaces of a host.
inside() {
    local pid
    pid=$(cat "$dir/${names[$1]}")
    shift
    nsenter -t "$pid" -n -u -i -m -p -- "$@"
}

# at_login CMD...: the login node shares the PID namespace of this script.
at_login() { nsenter -t "$(cat "$dir/login")" -n -u -i -m -- "$@"; }

# What the first process of a host does. Shared memory and names of a host are its own, and so is what /sys says of interfaces.
write_boot() {
    cat >"$dir/boot" <<EOS
#!/bin/bash
set -e
read -r pid _ </proc/self/stat # as the script sees it
[ "\$1" = login ] || mount -t proc proc /proc
echo "\$1" >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs "$dir/tmp" # launchers name files in it after processes
mount --bind "$dir/names" /etc/hosts
mount --rbind /sys/fs/cgroup "$dir/groups"
mount -t sysfs sysfs /sys
mount --rbind "$dir/groups" /sys/fs/cgroup
ip link set lo up
echo "\$pid" >"$dir/\$1.new"
mv "$dir/\$1.new" "$dir/\$1"
# A shell, which takes leave of processes whose parents have ended.
while :; do
    sleep 3600 &
    wait \$!
done
EOS
    chmod +x "$dir/boot"
}

# hold NAME OPTIONS...: starts what holds new namespaces.
hold() {
    local name=$1
    shift
    unshare -n -u -i -m --fork --propagation private "$@" "$dir/boot" "$name" </dev/null >/dev/null 2>"$dir/trouble-$name" &
    disown $! # its end is no news
}

# here NAME: waits for it.
here() {
    local tries
    for ((tries = 0; tries < 500; tries++)); do
        [ ! -s "$dir/$1" ] || return 0
        [ ! -s "$dir/trouble-$1" ] || break
        sleep 0.02
    done
    die "a host cannot be made: $(cat "$dir/trouble-$1")" "containers often forbid it"
}

hosts_up() {
    local i name
    mkdir "$dir/groups" "$dir/tmp" "$dir/shared"
    mount --bind "${1:-$dir/shared}" /mnt
    names=() # unlike those of any other run, because launchers name files in /tmp after them
    echo "127.0.0.1 localhost" >"$dir/names"
    for ((i = 0; i < hosts; i++)); do
        names+=("beff$BEFF_CLUSTER_OUTER-$((i + 1))")
        echo "$net.$((i + 1)) ${names[i]}" >>"$dir/names"
    done
    echo "$net.254 login" >>"$dir/names"
    write_boot
    hold login
    for name in "${names[@]}"; do hold "$name" -p; done
    for name in "${names[@]}" login; do here "$name"; done
    # Named as on the hosts: launchers are told one name.
    at_login ip link add eth0 type bridge
    at_login ip addr add "$net.254/24" dev eth0
    at_login ip link set eth0 up
    for ((i = 0; i < hosts; i++)); do
        at_login ip link add "port$i" type veth peer name eth0 netns "$(cat "$dir/${names[i]}")"
        at_login ip link set "port$i" master eth0 up
        inside "$i" ip addr add "$net.$((i + 1))/24" dev eth0
        inside "$i" ip link set eth0 up
    done
    write_agent
    export TMPDIR=$dir/tmp
    # UCX sees that there is one kernel and would go through its memory from host to host: TCP is the only way here. Within a
    # host MPICH and Open MPI use memory of their own.
    export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 FI_PROVIDER=tcp FI_TCP_IFACE=eth0
    # Open MPI 4 reads the first of each, PRRTE of Open MPI 5 the second.
    export OMPI_MCA_plm_rsh_agent=$dir/agent PRTE_MCA_plm_ssh_agent=$dir/agent
    export OMPI_MCA_oob_tcp_if_include=eth0 PRTE_MCA_oob_tcp_if_include=eth0
    export OMPI_MCA_btl_tcp_if_include=eth0
    # Open MPI believes that the ranks of a host have its cores for themselves.
    export OMPI_MCA_mpi_yield_when_idle=1
}

# What launchers use in place of ssh: OPTIONS HOST WORDS, the words joined for a shell.
write_agent() {
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
exec nsenter -t "\$pid" -n -u -i -m -p -- /bin/sh -c "cd '\$PWD' && \$*"
EOS
    chmod +x "$dir/agent"
}

# choose_mpi PROGRAM: sets `launcher`. MPI_Finalize of MPICH before 4.1 with UCX often hangs over TCP, so a newer one takes its
# place if `scripts/setup.sh cluster` has installed it: both have the same ABI, but Debian's library has another name.
choose_mpi() {
    local lib
    if [ -z "${BEFF_MPIRUN:-}" ]; then eval "$("$root/scripts/env.sh" mpich)"; fi
    if [ -z "${BEFF_MPI_NAME:-}" ]; then die "BEFF_MPIRUN is set and BEFF_MPI_NAME is not" "eval \"\$(scripts/env.sh mpich)\""; fi
    read -ra launcher <<<"$BEFF_MPIRUN"
    finalize_hangs "$1" || return 0
    if [ -x "$beff_dir/mpich/bin/mpirun" ]; then
        lib=$(mpi_library_dirs "$beff_dir/mpich/bin/mpicc")
        mkdir -p "$dir/mpich"
        ln -sf "$lib/libmpi.so.12" "$dir/mpich/libmpich.so.12"
        ln -sfn "$lib/mpich" "$dir/mpich/mpich" # libraries of its own, found beside it
        export LD_LIBRARY_PATH=$dir/mpich:$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        launcher=("$beff_dir/mpich/bin/mpirun" "${launcher[@]:1}")
    else
        say "MPI_Finalize of this MPICH often hangs over TCP; scripts/setup.sh cluster installs a newer one (Python wheel)"
    fi
}

finalize_hangs() {
    local library
    [ "$BEFF_MPI_NAME" = mpich ] || return 1
    library=$(ldd "$1" | sed -n 's/.*libmpi\(ch\)\?\.so\.12 => \([^ ]*\).*/\2/p')
    [ -n "$library" ] && ldd "$library" | grep libucp >/dev/null || return 1
    case $("${launcher[0]}" -version 2>/dev/null | sed -n 's/^ *Version: *//p') in
    [0-3].* | 4.0*) return 0 ;;
    *) return 1 ;;
    esac
}

# launch RANKS ROUND_ROBIN SECONDS PROGRAM ARGS...: ROUND_ROBIN is yes or no (neighbouring ranks share a host).
launch() {
    local ranks=$1 round_robin=$2 limit=$3 each slots words=("${launcher[@]}")
    shift 3
    each=$(((ranks + hosts - 1) / hosts))
    slots=$(printf ",%s:$each" "${names[@]}")
    case $BEFF_MPI_NAME in
    mpich)
        words+=(-launcher ssh -launcher-exec "$dir/agent" -iface eth0)
        if [ "$round_robin" = yes ]; then
            slots=$(printf ",%s" "${names[@]}")
            words+=(-ppn 1)
        fi
        words+=(-hosts "${slots#,}")
        ;;
    openmpi)
        words+=(--host "${slots#,}")
        if [ "$round_robin" = yes ]; then words+=(--map-by node); fi
        ;;
    *) die "$BEFF_MPI_NAME: only MPICH and Open MPI are known here" ;;
    esac
    # shellcheck disable=SC2016 # for the inner shell
    bounded "$limit" nsenter -t "$(cat "$dir/login")" -n -u -i -m -- \
        /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "${words[@]}" -n "$ranks" "$@"
}
