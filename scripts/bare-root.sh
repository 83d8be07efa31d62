#!/usr/bin/env bash
# The README's commands on a machine that has only Rust, a C compiler, make and Python: a root directory made by debootstrap.
#
#   scripts/bare-root.sh [root] [user] [-- COMMAND]     as root (MPI from packages), as a user without rights (MPI from wheels); both unless given
#
# COMMAND: what is run in a copy of the source, `make run` unless given; `make test` takes longer than all else. Prints for each the seconds to
# the end, and for `make run` the seconds to the value. Needs root, debootstrap, a network. BEFF_ROOT=DIR keeps the root directory there for
# further calls; SUITE=NAME is the Debian release (default: bookworm), MIRROR=URL its source.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/debian-root.sh
. "$root/scripts/debian-root.sh"

users=() command=(make run)
while [ $# -gt 0 ]; do
    case $1 in
    root | user) users+=("$1") ;;
    --)
        shift
        command=("$@")
        break
        ;;
    *) die "$1: neither root nor user" "scripts/bare-root.sh [root] [user] [-- COMMAND]" ;;
    esac
    shift
done
[ ${#users[@]} -gt 0 ] || users=(root user)

bare=${BEFF_ROOT:-}
if [ -z "$bare" ]; then
    bare=$(mktemp -d /var/tmp/beff-root.XXXXXX)
    trap 'rm -rf --one-file-system "$bare"' EXIT
fi
find_cargo
make_root "$bare" gcc libc6-dev make python3 ca-certificates git

# as NAME: the command in a copy of the source that belongs to this user, with a home directory of its own.
as() {
    local name=$1 home=/home/$1 status=0 start=$SECONDS log=$bare/$1.log
    chroot "$bare" id "$name" >/dev/null 2>&1 || chroot "$bare" useradd --create-home "$name"
    rm -rf "${bare:?}$home/beff-raw"
    mkdir -p "$bare$home/beff-raw"
    git -C "$root" archive HEAD | tar -x -C "$bare$home/beff-raw"
    # The gate looks at the history, too.
    chroot "$bare" sh -c "cd $home/beff-raw && git init -q && git add -A && git -c user.name=x -c user.email=x@localhost commit -qm import"
    chroot "$bare" chown -R "$name" "$home"
    say "$name: ${command[*]}, log $log"
    in_root "$bare" "$name" "$home" "cd $home/beff-raw && ${command[*]}" 2>&1 </dev/null |
        while IFS= read -r line; do printf '%5d %s\n' $((SECONDS - start)) "$line"; done >"$log" || status=$?
    local first
    first=$(awk '/b_eff_io \(release/ { print $1; exit }' "$log")
    printf '| %s | %s | %s | %s s | %s |\n' "$name" "${command[*]}" "$([ "$status" -eq 0 ] && echo ok || echo "FAILED ($status)")" \
        $((SECONDS - start)) "${first:+value after $first s}"
    [ "$status" -eq 0 ] || tail -n 20 "$log" >&2
    return "$status"
}

failures=0
for name in "${users[@]}"; do as "$name" || failures=$((failures + 1)); done
if [ "$failures" -gt 0 ]; then
    trap - EXIT
    say "kept: $bare"
    exit 1
fi
