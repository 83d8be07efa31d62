# shellcheck shell=bash
# Parallel file systems of Debian on the hosts of hosts.sh: a server and a brick on each, and its client on /mnt. Sourced after it.

# everywhere CMD...: on all hosts, one after the other.
everywhere() {
    local i
    for ((i = 0; i < hosts; i++)); do inside "$i" "$@"; done
}

# need PACKAGE COMMAND...
need() {
    local package=$1 command
    shift
    for command in "$@"; do
        have "$command" || die "$command is missing" "apt-get install --no-install-recommends $package"
    done
}

# eventually SECONDS CMD...: repeats CMD until it succeeds.
eventually() {
    local tries=$(($1 * 5))
    shift
    while ! "$@" >"$dir/last" 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || die "$*: $(cat "$dir/last")"
        sleep 0.2
    done
}

need_fuse() { [ -c /dev/fuse ] || die "/dev/fuse is missing: the clients of these file systems need it" "modprobe fuse"; }

# ---- GlusterFS -----------------------------------------------------------------------------------------------------------------
gluster() { inside 0 gluster --mode=script "$@"; }

gluster_knows_peers() { [ "$(gluster peer status | grep -c 'Peer in Cluster (Connected)')" -eq $((hosts - 1)) ]; }

# A file is on the brick of one host.
gluster_up() {
    local i bricks=()
    need_fuse
    need "glusterfs-server glusterfs-client" glusterd gluster mount.glusterfs
    for ((i = 0; i < hosts; i++)); do
        mkdir "$dir/brick$i"
        bricks+=("${names[i]}:$dir/brick$i")
        # State of its own for each of the three servers.
        inside "$i" sh -c 'for d in /run /var/lib/glusterd /var/log/glusterfs; do mount -t tmpfs tmpfs "$d" || exit; done; exec glusterd'
    done
    eventually 20 gluster pool list
    for ((i = 1; i < hosts; i++)); do gluster peer probe "${names[i]}" >/dev/null; done
    eventually 20 gluster_knows_peers
    gluster volume create beff "${bricks[@]}" force >/dev/null
    gluster volume start beff >/dev/null
}

# gluster_mount OPTIONS...: of mount(8).
gluster_mount() {
    local i
    for ((i = 0; i < hosts; i++)); do
        eventually 20 inside "$i" mount -t glusterfs "$@" "${names[i]}:/beff" /mnt
    done
}

# With its caches, a host sees the writes of others late.
gluster_without_caches() {
    local option
    everywhere umount /mnt
    for option in write-behind quick-read io-cache read-ahead stat-prefetch open-behind readdir-ahead; do
        gluster volume set beff "performance.$option" off >/dev/null
    done
    gluster_mount -o direct-io-mode=enable,attribute-timeout=0,entry-timeout=0,negative-timeout=0
}

# ---- MooseFS -------------------------------------------------------------------------------------------------------------------
# A master on the first host, and a chunk server on each.
moosefs_up() {
    local i
    need_fuse
    need "moosefs-master moosefs-chunkserver moosefs-client" mfsmaster mfschunkserver mfsmount
    mkdir "$dir/master"
    printf 'MFSM NEW' >"$dir/master/metadata.mfs"
    echo '* / rw,alldirs,admin,maproot=0:0' >"$dir/master/exports"
    cat >"$dir/master/cfg" <<EOS
DATA_PATH = $dir/master
EXPORTS_FILENAME = $dir/master/exports
WORKING_USER = root
WORKING_GROUP = root
EOS
    inside 0 mfsmaster -c "$dir/master/cfg" start >"$dir/master/log" 2>&1 || die "mfsmaster: $(cat "$dir/master/log")"
    for ((i = 0; i < hosts; i++)); do
        mkdir "$dir/chunks$i" "$dir/chunkserver$i"
        echo "$dir/chunks$i" >"$dir/chunkserver$i/hdd"
        cat >"$dir/chunkserver$i/cfg" <<EOS
DATA_PATH = $dir/chunkserver$i
HDD_CONF_FILENAME = $dir/chunkserver$i/hdd
HDD_LEAVE_SPACE_DEFAULT = 1GiB
MASTER_HOST = $net.1
WORKING_USER = root
WORKING_GROUP = root
EOS
        inside "$i" mfschunkserver -c "$dir/chunkserver$i/cfg" start >"$dir/chunkserver$i/log" 2>&1 ||
            die "mfschunkserver: $(cat "$dir/chunkserver$i/log")"
    done
    for ((i = 0; i < hosts; i++)); do eventually 20 inside "$i" mfsmount /mnt -H "$net.1" -o nonempty; done
    eventually 60 inside 0 sh -c 'echo hello >/mnt/first && rm /mnt/first'
}
