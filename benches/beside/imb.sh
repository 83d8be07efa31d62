#!/usr/bin/env bash
# beff-raw imb beside imb.c: the same names, sizes, modes and repetitions, in turns, both orders.
#
#   eval "$(scripts/env.sh mpich)" && cargo build --release && benches/beside/imb.sh DIR [NAME...]
#
# DIR is on the storage. Without names all 37. ROUNDS (default 6, even), RANKS (2), SIZES ("4096 65536 1048576 4194304"), OURS
# (more options of beff-raw imb) and LAUNCH (what stands behind `mpirun -n N`, e.g. --bind-to core) are read from the environment.
#
# For each name, mode and size: medians of ours and of imb.c in us, ratio of the fastest rounds of both, median of the ratios of the
# rounds with the smallest and the largest one; `*` where that median is more than 10 % off. Of non-blocking names it is t_pure.
# Ends with 1 if any is.
set -euo pipefail

dir=${1:?usage: benches/beside/imb.sh DIR [NAME...]}
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=${ROUNDS:-6} ranks=${RANKS:-2}
read -ra sizes <<<"${SIZES:-4096 65536 1048576 4194304}"
read -ra ours <<<"${OURS:-}"
read -ra launch <<<"${LAUNCH:-}"
read -ra mpirun <<<"${BEFF_MPIRUN:?eval \"\$(scripts/env.sh mpich)\" first}"
program=${PROGRAM:-${CARGO_TARGET_DIR:?}/release/beff-raw}
[ -x "$program" ] || { echo "imb.sh: no $program: cargo build --release" >&2; exit 2; }

tmp=$(mktemp -d "$dir/beside-imb.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
"${MPICC:?}" -O2 -o "$tmp/imb" "$here/imb.c"
printf '%s\n' "${sizes[@]}" >"$tmp/sizes"
# As deep below DIR as ours: each part of a path is looked up in every opening.
mkdir -p "$tmp/beff-raw-0000000000-00000/mpiio"

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for n in {S,P,C}_{Write,Read,IWrite,IRead}_{Indv,Expl} {P,C}_{Write,Read,IWrite,IRead}_Shared P_{Write,Read,IWrite,IRead}_Priv; do
        names+=("$n")
    done
    names+=(Open_Close)
fi

# Ranks that only wait take time from the one that works where they share a core: S has one rank on both sides.
of_name() { case $1 in S_*) echo 1 ;; *) echo "$ranks" ;; esac; }

# Ours begins with a pilot, which works through the largest size. Reads of 4 KiB are slower behind that, on both sides (0.41 or 0.56 us
# on one machine): the page cache then gets its memory from where that file was. So imb.c begins with the largest too; of a size
# that comes twice the last time counts.
largest=$(printf '%s\n' "${sizes[@]}" | sort -n | tail -1)

# run_c NAME, run_ours NAME: lines "NAME mode bytes us".
run_c() {
    timeout 300 "${mpirun[@]}" -n "$(of_name "$1")" "${launch[@]}" "$tmp/imb" "$1" "$tmp/beff-raw-0000000000-00000/mpiio" "$largest" "${sizes[@]}" </dev/null | awk '{ print $1, $2, $3, $5 }'
}
run_ours() {
    rm -f "$tmp"/ours.*
    local n
    n=$(of_name "$1")
    timeout 300 "${mpirun[@]}" -n "$n" "${launch[@]}" "$program" imb "$1" --npmin "$n" --msglen "$tmp/sizes" --iter 1000,40,100 --iter-policy off \
        --cache keep --path "$tmp" --out "$tmp/ours" --quiet "${ours[@]}" </dev/null >"$tmp/table" 2>&1 || { cat "$tmp/table" >&2; return 1; }
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { t = $at["blocking_seconds"] == "" ? $at["t_max_seconds"] : $at["blocking_seconds"]
          printf "%s %s %d %.4f\n", $at["benchmark"], $at["mode"], $at["sample_bytes"], t * 1e6 }' "$tmp/ours.csv"
}

for name in "${names[@]}"; do
    for ((round = 1; round <= rounds; round++)); do
        if ((round % 2)); then order="c ours"; else order="ours c"; fi
        for side in $order; do
            "run_$side" "$name" | sed "s/^/$round $side /"
        done
    done
done >"$tmp/times"

awk '
    function median(list, n,   i, j, v) {
        for (i = 2; i <= n; i++) { v = list[i]; for (j = i - 1; j > 0 && list[j] > v; j--) list[j + 1] = list[j]; list[j + 1] = v }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    { key = $3 " " $4 " " $5; if (!(key in seen)) { seen[key] = ++keys; order[keys] = key }
      time[key, $1, $2] = $6; if ($1 > rounds) rounds = $1 }
    END {
        printf "%-16s %-14s %9s %12s %12s %8s %7s %16s\n", "name", "mode", "bytes", "ours[us]", "imb.c[us]", "fastest", "ratio", "of the rounds"
        for (k = 1; k <= keys; k++) {
            key = order[k]; split(key, word, " "); n = 0
            for (r = 1; r <= rounds; r++) if ((key, r, "c") in time && (key, r, "ours") in time) {
                n++; c[n] = time[key, r, "c"]; o[n] = time[key, r, "ours"]; q[n] = o[n] / c[n]
            }
            if (n < rounds) { print key ": not measured by both"; bad++; continue }
            ratio = median(q, n); ours = median(o, n); bare = median(c, n); off = ratio > 1.1 || ratio < 1 / 1.1
            if (off) bad++
            d = ratio > 1 ? ratio : 1 / ratio
            if (d > worst) { worst = d; where = key " " sprintf("%.3f", ratio) }
            printf "%-16s %-14s %9d %12.2f %12.2f %8.3f %7.3f %7.3f - %6.3f%s\n", word[1], word[2], word[3], ours, bare, o[1] / c[1], ratio, q[1], q[n], off ? " *" : ""
        }
        printf "%d of %d are more than 10 %% off; the furthest: %s\n", bad, keys, where
        exit bad > 0
    }' "$tmp/times"
