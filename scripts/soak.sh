#!/usr/bin/env bash
# scripts/soak.sh [TIME] [MPI]: b_eff_io with three backends for TIME (12h), MPI mpich or openmpi. Samples resident memory and open descriptors
# of all ranks, and compares the last quarter of the run with the second one, after the first writes. Fails if one of them grows by more than
# 2 MiB or 4 descriptors, or if a file is left. DIR: directory on the file system.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

time=${1:-12h} name=${2:-mpich}
environment=$("$root/scripts/env.sh" "$name")
eval "$environment"
find_cargo
cargo build --release --locked -p beff-raw --manifest-path "$root/Cargo.toml" >&2
parent=${DIR:-$beff_dir/soak}
mkdir -p "$parent"
scratch=$(mktemp -d "$parent/run.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/files"
read -ra launch <<<"$BEFF_MPIRUN"
"${launch[@]}" -n 2 "$CARGO_TARGET_DIR/release/beff-raw" --backend mpiio,posix,uring --time "$time" --repeat auto \
    --path "$scratch/files" --out "$scratch/result" --quiet >"$scratch/screen" &
launcher=$!

# sample: seconds, largest resident memory of a rank in KiB, largest number of descriptors.
sample() {
    local process kib fds rss=0 open=0
    for process in $(pgrep -f "release/beff-raw .*$scratch/files"); do
        [ "$process" != "$launcher" ] && grep -q '^Name:.beff-raw' "/proc/$process/status" 2>/dev/null || continue
        # Pages of files that mmap maps are not memory of the program.
        kib=$(awk '/^RssAnon|^RssShmem/ { sum += $2 } END { print sum + 0 }' "/proc/$process/status" 2>/dev/null || echo 0)
        fds=$(find "/proc/$process/fd" -mindepth 1 2>/dev/null | wc -l)
        if [ "$kib" -gt "$rss" ]; then rss=$kib; fi
        if [ "$fds" -gt "$open" ]; then open=$fds; fi
    done
    if [ "$rss" -gt 0 ]; then echo "$SECONDS $rss $open"; fi
}
while kill -0 "$launcher" 2>/dev/null; do
    sample >>"$scratch/samples"
    sleep 2
done
status=0
wait "$launcher" || status=$?
[ "$status" -eq 0 ] || die "the run ended with exit code $status" "$(tail -n 20 "$scratch/screen")"
left=$(find "$scratch/files" -mindepth 1 | wc -l)
awk -v left="$left" '
    { at[NR] = $1; rss[NR] = $2; open[NR] = $3 }
    END {
        if (NR < 20) { print "too short: " NR " samples"; exit 1 }
        for (n = int(NR / 4); n < NR / 2; n++) { if (rss[n] > rss2) rss2 = rss[n]; if (open[n] > open2) open2 = open[n] }
        # Ends with the last sample before the files are removed.
        for (n = int(3 * NR / 4); n < NR; n++) { if (rss[n] > rss4) rss4 = rss[n]; if (open[n] > open4) open4 = open[n] }
        printf "%d s, %d samples: memory of a rank %d KiB in the second quarter, %d KiB in the last; descriptors %d, %d; %d files left\n",
            at[NR], NR, rss2, rss4, open2, open4, left
        exit rss4 > rss2 + 2048 || open4 > open2 + 4 || left > 0
    }' "$scratch/samples" || die "something grows or is left"
