#!/usr/bin/env bash
# Memory errors of io, imb and comm with each backend.
#   scripts/hostile/memory.sh valgrind|asan|miri     MPI=mpich|openmpi (mpich), DIR=/var/tmp
# valgrind: of a release build in target-MPI/valgrind; it does not know what io_uring writes, so uring is for asan
# asan:     AddressSanitizer, needs a nightly Rust (NIGHTLY=nightly); builds into target-MPI/asan
# miri:     unit tests of beff-trace that touch no files, needs `rustup component add miri --toolchain nightly`
# A line for each run; exit status 1 if one of them failed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

how=${1:-} nightly=${NIGHTLY:-nightly} dir=$(mktemp -d "${DIR:-/var/tmp}/beff-memory.XXXXXX")
trap 'rm -rf "$dir"' EXIT
environment=$("$root/scripts/env.sh" "${MPI:-mpich}")
eval "$environment"
find_cargo
cd "$root"
read -ra launch <<<"$BEFF_MPIRUN"
before=() failed=0
case $how in
valgrind)
    have valgrind || die "valgrind is missing" "apt install valgrind"
    # rustix reads the vDSO, which valgrind takes away; through libc it asks valgrind instead.
    RUSTFLAGS="--cfg=rustix_use_libc" cargo build --release --locked --bin beff-raw --target-dir "$CARGO_TARGET_DIR/valgrind" >&2
    program=$CARGO_TARGET_DIR/valgrind/release/beff-raw
    # Only errors below our own frames count: an MPI library has its own.
    before=(valgrind -q --log-file="$dir/%p.log" --track-origins=no)
    ;;
asan)
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS="-Zsanitizer=address" cargo "+$nightly" build --locked --bin beff-raw --target "$host" --target-dir "$CARGO_TARGET_DIR/asan" >&2
    program=$CARGO_TARGET_DIR/asan/$host/debug/beff-raw
    # Launchers and MPI keep what they have until the end.
    export ASAN_OPTIONS=detect_leaks=0:exitcode=99
    # UCX patches munmap and its like in the C library, where the sanitizer has its own: each would jump into the other.
    export UCX_MEM_EVENTS=n
    ;;
miri)
    # Tests of files, time and random search are for other means.
    cargo "+$nightly" miri test -p beff-trace --lib -- layout raw::record raw::block places types
    exit 0
    ;;
*) die "which one?" "scripts/hostile/memory.sh valgrind|asan|miri" ;;
esac

one() {
    local status=0 errors=0
    bounded 900 "${launch[@]}" -n 2 "${before[@]}" "$program" "$@" --quiet >"$dir/out" 2>&1 || status=$?
    if [ "$how" = valgrind ]; then
        errors=$(cat "$dir"/*.log 2>/dev/null | grep -c 'beff_\(raw\|backends\|ffi\|trace\)::' || true)
        if [ "$errors" -gt 0 ]; then cat "$dir"/*.log; fi
        rm -f "$dir"/*.log
    else
        errors=$(grep -c 'ERROR: AddressSanitizer' "$dir/out" || true)
    fi
    printf '%-10s exit %d, %d lines of errors: %s\n' "$how" "$status" "$errors" "$*"
    if [ "$status" -ne 0 ] || [ "$errors" -ne 0 ]; then
        tail -n 30 "$dir/out"
        failed=1
    fi
}

for backend in mpiio posix uring mmap null; do
    [ "$how $backend" != "valgrind uring" ] || continue
    one -T 2s --memory-per-process 64M --space 80M --types 0,1,2,3,4 --backend "$backend" --path "$dir"
    [ "$backend" = mmap ] || one imb --msglog 4:12 --iter 2 --backend "$backend" --path "$dir"
done
one comm --quick --memory-per-process 1M
exit "$failed"
