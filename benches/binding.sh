#!/bin/bash
# What binding the ranks changes: unbound, bound by the program, bound by the launcher, in turns on one machine.
#
#   eval "$(scripts/env.sh mpich)" && cargo build --release          # or openmpi
#   benches/binding.sh [DIR]
#
# Every turn runs the three one after the other, each turn beginning with another of them. The ratios are of runs of one turn: geometric mean of
# the patterns of an access method, beside the unbound run of the same turn; over the turns their geometric mean with its 95 % interval (Student, on
# logarithms). Unbound and bound are to differ by less than 5 %: within, if the interval lies within; more, if it lies outside; else not told.
# Cost and waiting: shares of the time in the clock that decisions take. Runs make one pass (--repeat off): many short turns say more
# than few long ones on a storage that changes.
#
# TURNS (15), RANKS (2), T (20s), BACKEND (uring), TYPES (2,3), SPACE (2G), MEMORY (512M): of the runs. PROGRAM: another binary.
set -eu
dir=$(mkdir -p "${1:-/var/tmp}" && cd "${1:-/var/tmp}" && pwd)
program=${PROGRAM:-$CARGO_TARGET_DIR/release/beff-raw}
TURNS=${TURNS:-15} RANKS=${RANKS:-2} T=${T:-20s} BACKEND=${BACKEND:-uring} TYPES=${TYPES:-2,3} SPACE=${SPACE:-2G} MEMORY=${MEMORY:-512M}
work=$(mktemp -d "$dir/beff-binding.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/disk"

# The launcher alone, without the options about binding that BEFF_MPIRUN may have; then one that leaves ranks free and one that binds.
read -ra words <<<"$BEFF_MPIRUN"
case ${BEFF_MPI_NAME:-mpich} in
openmpi) free=("${words[0]}" --oversubscribe --bind-to none) fixed=("${words[0]}" --bind-to core) ;;
*) free=("${words[@]}") fixed=("${words[@]}" -bind-to core) ;;
esac

run() { # NAME LAUNCHER... -- BIND
    local out=$1 launch=()
    shift
    while [ "$1" != -- ]; do launch+=("$1"); shift; done
    timeout 900 "${launch[@]}" -n "$RANKS" "$program" io --bind "$2" --backend "$BACKEND" -T "$T" --types "$TYPES" \
        --memory-per-process "$MEMORY" --space "$SPACE" --path "$work/disk" --out "$work/$out" --repeat off --quiet >/dev/null
}

one() { # WAY TURN
    case $1 in
    unbound) run "$1-$2" "${free[@]}" -- none ;;
    program) run "$1-$2" "${free[@]}" -- auto ;;
    launcher) run "$1-$2" "${fixed[@]}" -- auto ;;
    esac
}

ways=(unbound program launcher)
for turn in $(seq "$TURNS"); do
    for k in 0 1 2; do one "${ways[(turn + k) % 3]}" "$turn"; done
    echo "turn $turn of $TURNS done" >&2
done

python3 - "$work" "$TURNS" <<'PYTHON'
import json, math, statistics, sys

work, turns = sys.argv[1], int(sys.argv[2])
WAYS, METHODS = ("unbound", "program", "launcher"), ("write", "rewrite", "read")

def rates(document):
    """Geometric mean over the patterns of each access method, MB/s."""
    found = {}
    for method in METHODS:
        logs = [math.log(p["moved_bytes"] / sum(p["intervals"].values()) / 1e6) for p in document["patterns"]
                if p["access"] == method and p["moved_bytes"] and sum(p["intervals"].values())]
        if logs:
            found[method] = math.exp(statistics.mean(logs))
    return found

def shares(document):
    time = sum(sum(p["intervals"].values()) for p in document["patterns"])
    cost = sum(p["decision_cost_seconds"] for p in document["patterns"])
    waited = sum(p["intervals"]["decide_seconds"] for p in document["patterns"])
    return cost / time, waited / time

runs = {way: [json.load(open(f"{work}/{way}-{turn}.json")) for turn in range(1, turns + 1)] for way in WAYS}
for way in WAYS:
    states = {h["state"]["kind"] for d in runs[way] for h in d["manifest"]["binding"]["hosts"]}
    cost, waited = (statistics.median(values) for values in zip(*map(shares, runs[way])))
    middle = {m: statistics.median(r[m] for r in map(rates, runs[way]) if m in r) for m in METHODS}
    print(f"{way:9} state {', '.join(sorted(states)):10} cost {cost:6.2%}, with waiting {waited:6.2%}; "
          + ", ".join(f"{m} {v:.0f}" for m, v in middle.items()) + " MB/s")
# 97.5 % quantiles of Student's t by degrees of freedom; beyond, the last one, which is a little too wide.
STUDENT = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093]

def interval(ratios):
    """Geometric mean and 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    half = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)

def verdict(low, high):
    if 1 / 1.05 <= low and high <= 1.05:
        return "within 5 %"
    return "MORE THAN 5 %" if high < 1 / 1.05 or low > 1.05 else "not told"

print("\nbeside the unbound run of the same turn: mean [95 % interval]")
for way in WAYS[1:]:
    for method in METHODS:
        pairs = [(rates(a), rates(b)) for a, b in zip(runs[way], runs["unbound"])]
        ratios = [a[method] / b[method] for a, b in pairs if method in a and method in b]
        if ratios:
            mean, low, high = interval(ratios)
            print(f"{way:9} {method:8} {mean:.3f} [{low:.3f}, {high:.3f}]  {verdict(low, high)}")
PYTHON
