#!/usr/bin/env bash
# What the profiler costs a call, in ns above the bare call, for the MPI of the environment:
#   eval "$(scripts/env.sh mpich)" && cargo build --release -p beff-profiler && benches/profiler/cost.sh [RUNS]
# Runs with and without it take turns (21 each, or RUNS); of each the least of many batches, then over the runs the median and the least.
# On a shared machine runs of one program fall into groups (another one beside it, or none): then only the least ones compare like with
# like. Files are in memory (/dev/shm), the record too. Rows `*_stub` are calls of a function that returns at once: the cost without the
# system call, after which caches and branch predictions of the caller are lost (some 10 ns more or less with the placement of the code).
# Last, the memory of 10 million calls, and their bytes in the record.
set -euo pipefail
runs=${1:-21}
here=$(cd "$(dirname "$0")" && pwd)
library=${CARGO_TARGET_DIR:-$here/../../target}/release/libbeff_profiler.so
[ -f "$library" ] || { echo "no $library: cargo build --release -p beff-profiler" >&2; exit 2; }
work=$(mktemp -d /dev/shm/beff-cost.XXXXXX)
trap 'rm -rf "$work"' EXIT
"${MPICC:-mpicc}" -O2 -Wno-stringop-overflow -o "$work/cost" "$here/cost.c"
"${MPICC:-mpicc}" -O2 -shared -fPIC -o "$work/stub.so" "$here/stub.c"

# run NAME STUB ARGUMENTS: one process under the launcher; the profiler for it alone, and the library STUB behind it.
run() {
    local name=$1 stub=$2 preload=(env "LD_PRELOAD=$2")
    shift 2
    if [ "$name" = recorded ]; then
        rm -rf "$work/profile" && mkdir "$work/profile"
        preload=(env "LD_PRELOAD=$library:$stub" "BEFF_PROFILE_DIR=$work/profile")
    fi
    # shellcheck disable=SC2086 # a launcher and its arguments
    timeout 300 ${BEFF_MPIRUN:-mpirun} -n 1 "${preload[@]}" "$work/cost" "$work/file" "$@"
}

for ((i = 0; i < runs; i++)); do
    if ((i % 2)); then order="recorded bare"; else order="bare recorded"; fi
    for name in $order; do
        run "$name" "" | sed "s/^/$name /"
        run "$name" "$work/stub.so" | sed -n "s/_at /_at_stub /; s/^[a-z]*_at_stub/$name &/p"
    done
done | awk '
    { values[$2 " " $1] = values[$2 " " $1] " " $3; if (!($2 in seen)) { seen[$2]; order[++kinds] = $2 } }
    function rank(text, share,   n, list, i, j, t) {
        n = split(text, list, " ")
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        return list[1 + int((n - 1) * share)]
    }
    END {
        print "call bare_ns recorded_ns above_ns least_bare_ns least_recorded_ns least_above_ns"
        for (i = 1; i <= kinds; i++) {
            bare = rank(values[order[i] " bare"], 0.5); with = rank(values[order[i] " recorded"], 0.5)
            least = rank(values[order[i] " bare"], 0); least_with = rank(values[order[i] " recorded"], 0)
            printf "%s %.1f %.1f %.1f %.1f %.1f %.1f\n", order[i], bare, with, with - bare, least, least_with, least_with - least
        }
    }'

calls=10000000
echo "bare: $(run bare "" $calls | tr '\n' ' ')"
echo "recorded: $(run recorded "" $calls | tr '\n' ' ')"
bytes=$(stat -c %s "$work/profile/rank-0.beff")
awk -v bytes="$bytes" -v calls="$calls" 'BEGIN { printf "record: %d bytes, %.2f a call\n", bytes, bytes / calls }'
