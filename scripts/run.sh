#!/usr/bin/env bash
# `make run`: b_eff_io with RANKS ranks through BACKEND for about T, in a new directory under DIR. The table goes to stdout.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ranks=${RANKS:-2} time=${T:-60s} backend=${BACKEND:-mpiio}

# seconds TIME: 90, 90s, 15m, 1h.
seconds() {
    case $1 in
    *[!0-9smh]* | "") die "T=$1: give a whole number with s, m or h" ;;
    *h) echo $((${1%h} * 3600)) ;;
    *m) echo $((${1%m} * 60)) ;;
    *) echo "${1%s}" ;;
    esac
}

# scratch_dir: the first place that is on a disk; memory would be measured instead of storage.
scratch_dir() {
    local dir
    for dir in "$beff_dir/scratch" "${TMPDIR:-/var/tmp}" /var/tmp; do
        mkdir -p "$dir" 2>/dev/null && [ -w "$dir" ] || continue
        case $(stat -f -c %T "$dir") in tmpfs | ramfs) continue ;; esac
        echo "$dir"
        return 0
    done
    die "the checkout and /var/tmp are both in memory (tmpfs)" "choose a directory on the file system to be measured: make run DIR=..."
}

limit=$(($(seconds "$time") * 3 + 600)) # the first use of each file and the last flush come on top of T
dir=${DIR:-$(scratch_dir)}
mkdir -p "$dir" || die "cannot make the directory DIR=$dir" "choose another one"

name=$("$root/scripts/setup.sh" run)
environment=$("$root/scripts/env.sh" "$name")
eval "$environment"
find_cargo
say "build: release, $BEFF_MPI_NAME ($MPICC)"
# With the profiler: the documents go on with beff-raw profile.
cargo build --release --locked -p beff-raw -p beff-profiler --manifest-path "$root/Cargo.toml" >&2

read -ra launch <<<"$BEFF_MPIRUN"
read -ra extra <<<"${ARGS:-}"
say "run: $ranks ranks, backend $backend, $time, under $dir"
bounded "$limit" "${launch[@]}" -n "$ranks" "$CARGO_TARGET_DIR/release/beff-raw" \
    --backend "$backend" --time "$time" --path "$dir" "${extra[@]}"
