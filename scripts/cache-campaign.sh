#!/usr/bin/env bash
# Is a cached read marked every time, and an uncached one never? N short runs of each of these:
#   keep      buffered, nothing dropped: what was written a moment ago is read from memory   -> every read must be marked
#   drop      buffered, pages dropped before each read                                       -> no read may be marked
#   direct    O_DIRECT, nothing dropped (the pages of the writes are not in the cache)       -> no read may be marked
# Counted are read patterns and runs; a run is right if all of its reads are. Exit status 1 if any is wrong.
#
#   scripts/cache-campaign.sh [N]      N runs of each kind, 100 if not given
# DIR        on the file system to be looked at (not in memory); a new directory is made in it and removed
# PROGRAM    beff-raw; without it the release build of this tree is made
# BACKENDS   of the buffered runs, "posix mpiio"; may be empty. Those with direct I/O are posix and uring
# TYPES, RANKS, T   2, 2, 1s
# KEEP_ALL=1 leaves the results of all runs, not only of wrong ones
# Several minutes for N = 100: to be run on a machine with memory to spare, where nobody drops caches.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

count=${1:-100} types=${TYPES:-2} ranks=${RANKS:-2} time=${T:-1s}
case $count in *[!0-9]* | "") die "N=$count: not a number" ;; esac
have python3 || die "python3 is missing" "it reads the results"

environment=$("$root/scripts/env.sh" "${MPI:-mpich}")
eval "$environment"
program=${PROGRAM:-}
if [ -z "$program" ]; then
    find_cargo
    cargo build --release --locked --bin beff-raw --manifest-path "$root/Cargo.toml" >&2
    program=$CARGO_TARGET_DIR/release/beff-raw
fi
mkdir -p "${DIR:-$beff_dir/scratch}"
work=$(mktemp -d "${DIR:-$beff_dir/scratch}/cache-campaign.XXXXXX")
case $(stat -f -c %T "$work") in tmpfs | ramfs) die "$work is in memory" "give DIR on a disk" ;; esac
mkdir "$work/files"
read -ra launch <<<"$BEFF_MPIRUN"

# judge EXPECTED JSON: `reads wrong` and on stderr each wrong read; EXPECTED is marked or unmarked.
judge() {
    python3 - "$@" <<'END'
import json, sys
expected, path = sys.argv[1], sys.argv[2]
reads = json.load(open(path))["derived"]["reads"]
wrong = 0
for r in reads:
    # Not known is wrong in both ways.
    if r["cache_share"] is None or r["cached"] != (expected == "marked"):
        wrong += 1
        print("  wrong: %s pattern %d, %d bytes, from storage %s: share %s, expected %s"
              % (r["backend"], r["pattern"], r["moved_bytes"], r["storage_bytes"], r["cache_share"], expected), file=sys.stderr)
print(len(reads), wrong)
END
}

# series NAME EXPECTED ARGS...: one line of the result.
failed=0
series() {
    local name=$1 expected=$2 runs=0 right=0 reads=0 wrong=0 i out r w
    shift 2
    for ((i = 1; i <= count; i++)); do
        out=$work/$name-$i
        bounded 300 "${launch[@]}" -n "$ranks" "$program" --types "$types" -T "$time" --memory-per-process 64M \
            --path "$work/files" --out "$out" --quiet "$@" >"$out.log" 2>&1 || die "run $i of $name failed" "see $out.log"
        read -r r w < <(judge "$expected" "$out.json")
        runs=$((runs + 1)) reads=$((reads + r)) wrong=$((wrong + w))
        if [ "$w" -eq 0 ] && [ "$r" -gt 0 ]; then
            right=$((right + 1))
            [ -n "${KEEP_ALL:-}" ] || rm -f "$out".*
        else
            say "  kept: $out.json"
        fi
    done
    printf '%-16s expected %-9s right in %d of %d runs; %d reads, %d wrong\n' "$name" "$expected" "$right" "$runs" "$reads" "$wrong"
    if [ "$right" -ne "$runs" ]; then failed=1; fi
}

for backend in ${BACKENDS-posix mpiio}; do
    series "keep-$backend" marked --backend "$backend" --cache keep
    series "drop-$backend" unmarked --backend "$backend" --cache drop
done
for backend in posix uring; do
    series "direct-$backend" unmarked --backend "$backend" --cache keep --direct required
done
if [ "$failed" -eq 0 ] && [ -z "${KEEP_ALL:-}" ]; then rm -rf "$work"; else say "results are in $work"; fi
exit "$failed"
