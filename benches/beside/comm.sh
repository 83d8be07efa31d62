#!/usr/bin/env bash
# `beff-raw comm` beside an ordinary C program that walks through memory the same way (walk.c), in turns, ranks bound to cores.
#   eval "$(scripts/env.sh mpich)" && cargo build --release && benches/beside/comm.sh [options]
#
#   -r ROUNDS   runs of either program (7)
#   -n RANKS    ranks (2)
#   -m SIZE     --memory-per-process, which decides Lmax (2G: 16 MiB)
#   -b PROGRAM  beff-raw ($CARGO_TARGET_DIR/release/beff-raw)
#
# Prints for each method and size the bandwidth of both in their best round (of the best of three repetitions), the ratio of these,
# and the median of the ratios of the rounds, with the smallest and the largest of them; at the end the largest deviation of
# either. Where starts of one program differ by more than what is looked for, as on virtual machines whose processors lie near
# or far from start to start, the best rounds tell, and it takes many of them.
# Ours: ping-pong and ring-6, which is the ring of all ranks. Needs jq.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { printf 'comm.sh: %s\n' "$*" >&2; exit 2; }

rounds=7 ranks=2 memory=2G program=${CARGO_TARGET_DIR:-target}/release/beff-raw
while getopts r:n:m:b: option; do
    case $option in
    r) rounds=$OPTARG ;;
    n) ranks=$OPTARG ;;
    m) memory=$OPTARG ;;
    b) program=$OPTARG ;;
    *) sed -n "2,15p" "$0" >&2 && exit 2 ;;
    esac
done
command -v jq >/dev/null || die "jq is missing"
[ -x "$program" ] || die "no program $program: cargo build --release, or give it with -b"
flavour=${BEFF_MPI_NAME:?run: eval \"\$(scripts/env.sh mpich)\"}
read -r -a words <<<"$BEFF_MPIRUN"
if [ "$flavour" = openmpi ]; then
    # The environment of the tests binds nothing; here every rank has a core.
    launch=("${words[0]}" --bind-to core -n "$ranks")
else
    launch=("${words[@]}" -bind-to core -n "$ranks")
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# gcc takes MPI_STATUSES_IGNORE of MPICH for an array of no length.
"${MPICC:-mpicc}" -O2 -Wno-stringop-overflow -o "$work/walk" "$here/walk.c" -lm
lmax=$("$program" comm --plan "$ranks" --memory-per-process "$memory" --json | jq .lmax_bytes)
printf '%s, %s ranks, Lmax %s bytes, %s rounds: %s\n' "$flavour" "$ranks" "$lmax" "$rounds" "${launch[*]}" >&2

# One line for each loop: round, side, method, bytes, MB/s.
ours() {
    "${launch[@]}" "$program" comm --families ping-pong,ring --memory-per-process "$memory" --time 2m --quiet \
        --out "$work/ours-$1" >/dev/null 2>"$work/stderr" || { cat "$work/stderr" >&2; exit 1; }
    jq -r --arg round "$1" '.patterns[] | select(.pattern == "ping-pong" or .pattern == "ring-6") | .messages as $messages |
        .sizes[] | .message_bytes as $bytes | .loops[] |
        "\($round) ours \(.method) \($bytes) \($bytes * $messages * .iterations / .seconds / 1e6)"' "$work/ours-$1.json"
}
theirs() {
    "${launch[@]}" "$work/walk" "$lmax" | awk -v round="$1" '{print round, "c", $1, $2, $6}'
}
for round in $(seq "$rounds"); do
    # A B B A: what drifts meets both alike.
    if [ $((round % 2)) = 1 ]; then ours "$round"; theirs "$round"; else theirs "$round"; ours "$round"; fi
done >"$work/loops"

awk '
    function median(list, n,    i, j, t, v) {
        for (i = 1; i <= n; i++) v[i] = list[i]
        for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
        low = v[1]; high = v[n]
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    { key = $3 " " $4; if (!(key in seen)) { seen[key] = ++keys; name[keys] = key }
      if ($5 > best[key, $1, $2]) best[key, $1, $2] = $5; if ($1 > rounds) rounds = $1 }
    END {
        printf "%-12s %12s %12s %12s %8s %8s  %s\n", "method", "bytes", "ours MB/s", "C MB/s", "ours/C", "median", "[rounds]"
        for (k = 1; k <= keys; k++) {
            n = top = ctop = 0
            for (r = 1; r <= rounds; r++) {
                a = best[name[k], r, "ours"]; b = best[name[k], r, "c"]
                if (a > 0 && b > 0) { n++; q[n] = a / b }
                if (a > top) top = a
                if (b > ctop) ctop = b
            }
            split(name[k], part, " ")
            if (n == 0) { printf "%-12s %12d   only one of the two measured it\n", part[1], part[2]; missing++; continue }
            mq = median(q, n)
            printf "%-12s %12d %12.3f %12.3f %8.3f %8.3f  [%.3f, %.3f]\n", part[1], part[2], top, ctop, top / ctop, mq, low, high
            away = top > ctop ? top / ctop - 1 : 1 - top / ctop
            if (away > worst) { worst = away; where = name[k] }
            away = mq > 1 ? mq - 1 : 1 - mq
            if (away > mworst) { mworst = away; mwhere = name[k] }
        }
        printf "largest deviation of the best rounds %.1f %% (%s), of a median %.1f %% (%s); %d of %d compared\n", 100 * worst, where, 100 * mworst, mwhere, keys - missing, keys
    }' "$work/loops"
