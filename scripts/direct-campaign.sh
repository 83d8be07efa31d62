#!/usr/bin/env bash
# Direct I/O on many file systems, with the alignment of statx and as on a kernel without it (STATX_DIOALIGN hidden by a test hook). For each
# file system and backend: direct (proven), accepted (bypass unproven), buffered (with the reason), or refused; every byte is compared.
#
#   scripts/direct-campaign.sh [FILE-SYSTEM...]      all of these if none is named:
#     ext4-512 ext4-1k ext4-4k ext4-journal ext3 xfs btrfs btrfs-nodatacow overlay tmpfs bindfs mergerfs ntfs-3g
# DIR        directory on a disk for the images; a new directory is made in it and removed
# PROGRAM    beff-raw with test hooks; without it one is built
# RANKS, T   2, 2s
# Needs root, and for some file systems the packages btrfs-progs, xfsprogs, bindfs, mergerfs, ntfs-3g; the others are skipped.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ranks=${RANKS:-2} time=${T:-2s}
have python3 || die "python3 is missing" "it reads the results"
[ "$(id -u)" = 0 ] || die "root is needed" "loop devices are mounted"
environment=$("$root/scripts/env.sh" "${MPI:-mpich}")
eval "$environment"
program=${PROGRAM:-}
if [ -z "$program" ]; then
    find_cargo
    cargo build --profile gate --locked --features test-hooks --bin beff-raw --manifest-path "$root/Cargo.toml" >&2
    program=$CARGO_TARGET_DIR/gate/beff-raw
fi
mkdir -p "${DIR:-$beff_dir/scratch}"
work=$(mktemp -d "${DIR:-$beff_dir/scratch}/direct-campaign.XXXXXX")
read -ra launch <<<"$BEFF_MPIRUN"
clean() {
    umount -R "$work/disk" 2>/dev/null || true
    umount -R "$work/lower" 2>/dev/null || true
}
trap 'clean; rm -rf "$work"' EXIT

# image MKFS... -- MOUNT-OPTIONS: a loop file system of 1 GiB on $where.
where=$work/disk
image() {
    local mkfs=()
    while [ "$1" != -- ]; do mkfs+=("$1"); shift; done
    shift
    have "${mkfs[0]}" || return 1
    rm -f "$work/image"
    truncate -s 1G "$work/image"
    "${mkfs[@]}" "$work/image" >"$work/mkfs.log" 2>&1
    mount -o "loop${1:+,$1}" "$work/image" "$where"
}

# set_up NAME: the file system on $work/disk; fails if it cannot be made here.
set_up() {
    mkdir -p "$work/disk" "$work/lower"
    case $1 in
    ext4-512) image mkfs.ext4 -q -F -- ;;
    ext4-1k) image mkfs.ext4 -q -F -b 1024 -- ;;
    ext4-4k)
        have mkfs.ext4 || return 1
        rm -f "$work/image"; truncate -s 1G "$work/image"
        local device
        device=$(losetup --find --show --sector-size 4096 "$work/image") && mkfs.ext4 -q -F "$device" && mount "$device" "$where"
        # Detached when the file system is unmounted.
        losetup --detach "$device"
        ;;
    ext4-journal) image mkfs.ext4 -q -F -- data=journal ;;
    ext3) image mkfs.ext3 -q -F -- ;;
    xfs) image mkfs.xfs -q -f -- ;;
    btrfs) image mkfs.btrfs -q -f -- ;;
    btrfs-nodatacow) image mkfs.btrfs -q -f -- nodatacow ;;
    overlay)
        mkdir -p "$work/lower/upper" "$work/lower/work" "$work/lower/lower"
        mount -t overlay -o "lowerdir=$work/lower/lower,upperdir=$work/lower/upper,workdir=$work/lower/work" none "$where"
        ;;
    tmpfs) mount -t tmpfs -o size=1G none "$where" ;;
    bindfs) have bindfs && bindfs "$work/lower" "$where" ;;
    mergerfs) have mergerfs && mergerfs "$work/lower" "$where" ;;
    ntfs-3g) have mkntfs && have ntfs-3g && where=$work/disk image mkntfs -q -F -f -- "" ;;
    *) die "unknown file system: $1" "the first lines of this script name all" ;;
    esac
}

# row NAME STATX: one line for each backend of the last run.
row() {
    python3 - "$@" "$work" <<'END'
import json, sys
name, statx, code, work = sys.argv[1:5]
try:
    result = json.load(open(work + "/out.json"))
except (OSError, ValueError):
    print(f"{name:16} {statx:9} no result, exit {code}")
    sys.exit()
storage = result["manifest"]["storage"]
print(f"{name:16} {statx:9} {storage['fs_type']}: {storage['direct_align_basis']}, offset {storage['direct_offset_align_bytes']}, "
      f"memory {storage['direct_memory_align_bytes']}; {storage['direct_trial'] or ''} (exit {code})")
wrong = sum(t["full_verification"]["words_wrong"] for t in result["types"] if t.get("full_verification"))
for backend in result["config"]["backends"]:
    ran = [p for p in result["patterns"] if p["backend"] == backend and p["calls"] > 0]
    count = {d: sum(p["direct"] is d for p in ran) for d in (True, False, None)}
    why = sorted({p["strategy"].split("not direct: ")[1].split(";")[0].split(", depth")[0] for p in ran if "not direct: " in p["strategy"]})
    unproven = "unknown, the library decides" if backend == "mpiio" else "accepted, bypass unproven"
    words = [f"{count[True]} direct"] * (count[True] > 0) + [f"{count[None]} {unproven}"] * (count[None] > 0)
    words += [f"{count[False]} buffered" + (f" ({'; '.join(why)})" if why else "")] * (count[False] > 0)
    print(f"{'':26} {backend:6} {', '.join(words) or 'not run'}; {wrong} words wrong")
END
}

all=(ext4-512 ext4-1k ext4-4k ext4-journal ext3 xfs btrfs btrfs-nodatacow overlay tmpfs bindfs mergerfs ntfs-3g)
[ $# -gt 0 ] || set -- "${all[@]}"
for name in "$@"; do
    if ! set_up "$name"; then
        printf '%-16s SKIPPED: it cannot be made here\n' "$name"
        clean
        continue
    fi
    for statx in statx no-statx; do
        rm -f "$work"/out.*
        code=0
        hide=()
        [ $statx = statx ] || hide=(env BEFF_RAW_NO_DIOALIGN=1)
        "${hide[@]}" timeout 120 "${launch[@]}" -n "$ranks" "$program" -T "$time" --backend posix,uring,mpiio --direct auto --verify full \
            --types 0,2 --memory-per-process 64M --space 200M --path "$where" --out "$work/out" --quiet --repeat off \
            >"$work/log" 2>&1 || code=$?
        row "$name" "$statx" "$code"
    done
    clean
done
