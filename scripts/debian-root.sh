# shellcheck shell=bash
# A root directory of Debian without anything that is not named, with the Rust of this machine. Sourced, never run, after lib.sh.

# make_root DIR PACKAGES...: what is there already is not made again.
make_root() {
    local dir=$1 packages
    shift
    [ "$(id -u)" -eq 0 ] || die "a root directory is made by root" "run this as root"
    have debootstrap || die "debootstrap is missing" "apt-get install debootstrap"
    packages=$(IFS=,; echo "$*")
    if [ ! -e "$dir/etc/debian_version" ]; then
        say "root: debootstrap of ${SUITE:-bookworm} into $dir"
        debootstrap --variant=minbase --include="$packages" "${SUITE:-bookworm}" "$dir" "${MIRROR:-http://deb.debian.org/debian}" \
            >"$dir.log" 2>&1 || die "debootstrap failed" "$(tail -n 3 "$dir.log")"
        rm "$dir.log"
    fi
    # The toolchain alone, not the settings or caches of whoever calls this.
    if [ ! -e "$dir/opt/rust" ]; then cp -a "$(rustc --print sysroot)" "$dir/opt/rust"; fi
    cp /etc/resolv.conf "$dir/etc/resolv.conf"
    if [ -d /usr/local/share/ca-certificates ]; then cp -r /usr/local/share/ca-certificates "$dir/usr/local/share/"; fi
    cp /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/ca-certificates.crt"
}

# in_root DIR USER HOME COMMAND: in namespaces of its own, so that /proc, /sys and /dev end with it; without variables of the caller, except
# those that name a proxy.
in_root() {
    local dir=$1 user=$2 home=$3 command=$4 words=()
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY RANKS T BACKEND; do
        if [ -n "${!name:-}" ]; then words+=("$name=${!name}"); fi
    done
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount --pid --fork --kill-child sh -c '
        # A mount of its own, or /proc/self/mountinfo lists nothing for /.
        mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" || exit 125
        root=$1 user=$2
        shift 2
        exec chroot --userspec="$user" "$root" /usr/bin/env -i "$@"' sh \
        "$dir" "$user" "HOME=$home" "USER=$user" "PATH=/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin" LANG=C.UTF-8 "${words[@]}" \
        bash -c "$command"
}
