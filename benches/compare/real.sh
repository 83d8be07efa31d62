#!/bin/bash
# What `compare` says of runs whose difference is known: equal ones, a disk throttled by 20 %, a hint that hurts.
#
#   eval "$(scripts/env.sh mpich)" && cargo build --release
#   benches/compare/real.sh equal|throttled|hints [DIR]
#
# PAIRS (20): pairs of equal runs. TRIES (10): comparisons of the others, with RUNS (3) a side. T: --time of a run.
# `throttled` needs root and the blkio controller (cgroup v1): one disk of RATE bytes/s and RATE / 64k operations/s, and the same with 20 %
# less. The runs of both sides take turns. `hints` needs ROMIO: there the chunks of type 0 lie between those of other ranks, so without
# collective buffering (romio_cb_write=disable) data sieving reads, locks and writes what is between them. Alone, romio_ds_write=enable
# changes nothing here: with collective buffering there are no holes, and a call of one chunk is contiguous.
# Type 0 alone: without collective buffering MPICH 4.0 writes what MPI_File_write_ordered is given (type 1) in another order, which is found.
set -eu
part=${1:?equal, throttled or hints}
dir=$(mkdir -p "${2:-/var/tmp}" && cd "${2:-/var/tmp}" && pwd)
program=${PROGRAM:-$CARGO_TARGET_DIR/release/beff-raw}
PAIRS=${PAIRS:-20} TRIES=${TRIES:-10} RUNS=${RUNS:-3} T=${T:-10s} RATE=${RATE:-104857600}
work=$(mktemp -d "$dir/beff-compare.XXXXXX")
group=/sys/fs/cgroup/blkio/beff-compare
cleanup() {
    # A run that is ended here takes its ranks with it: they are in the group.
    while [ -s $group/cgroup.procs ]; do
        xargs -r kill -KILL <$group/cgroup.procs 2>/dev/null || true
        sleep 0.1
    done
    [ ! -d $group ] || rmdir $group
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

run() { # NAME OPTIONS...
    local out=$1
    shift
    mkdir -p "$work/disk"
    timeout 600 $BEFF_MPIRUN -n 2 "$program" io -T "$T" --path "$work/disk" --out "$work/$out" --quiet "$@" >/dev/null
}

throttled() { # PERCENT, then as `run`
    local device rate=$((RATE * $1 / 100))
    device=$(lsblk -no MAJ:MIN "$(df --output=source "$work" | tail -1)" | head -1 | tr -d ' ')
    shift
    mkdir -p $group
    for way in read write; do
        echo "$device $rate" >$group/blkio.throttle.${way}_bps_device
        echo "$device $((rate / 65536))" >$group/blkio.throttle.${way}_iops_device
    done
    (echo $BASHPID >$group/cgroup.procs && run "$@")
}

# How often something is called: value and types, and patterns.
called() { # JSON of compare
    python3 - "$1" <<'PYTHON'
import collections, json, sys
all = json.load(open(sys.argv[1]))["comparisons"][0]["compared"]
count = lambda levels: dict(collections.Counter(q["call"] for q in all if q["level"] in levels))
print("   value and types", count(("value", "group")), "patterns", count(("detail",)))
for q in all:
    if q["level"] == "value" or (q["call"] not in ("equal", "unknown") and q["level"] == "group"):
        print("     ", q["row"], q["column"], q["call"], f"{q['ratio']:.2f}", q["interval"] and [round(i, 2) for i in q["interval"]])
for call in ("slower", "faster"):
    for q in all:
        if q["level"] == "detail" and q["call"] == call:
            print("      ", call, q["row"], q["column"] or "", f"{q['ratio']:.2f}", q["interval"] and [round(i, 2) for i in q["interval"]])
PYTHON
}

compare() { "$program" compare "$@" --format json >"$work/compare.json" && called "$work/compare.json"; }

sides() { # number of the comparison
    local a b n
    for n in $(seq "$RUNS"); do a="${a:+$a,}$work/a$1-$n.json" b="${b:+$b,}$work/b$1-$n.json"; done
    compare "$a" "$b"
}

case $part in
equal)
    run itself --backend posix
    echo "a run with itself"
    compare "$work/itself.json" "$work/itself.json"
    for n in $(seq "$PAIRS"); do
        for side in a b; do run "$side$n" --backend posix; done
        echo "pair $n"
        compare "$work/a$n.json" "$work/b$n.json"
    done ;;
throttled)
    for n in $(seq "$TRIES"); do
        for k in $(seq "$RUNS"); do
            throttled 100 "a$n-$k" --backend posix --direct required
            throttled 80 "b$n-$k" --backend posix --direct required
        done
        echo "comparison $n: 20 % less"
        sides "$n"
    done ;;
hints)
    for n in $(seq "$TRIES"); do
        for k in $(seq "$RUNS"); do
            run "a$n-$k" --backend mpiio --types 0 --space 2G
            run "b$n-$k" --backend mpiio --types 0 --space 2G --hint romio_cb_write=disable --hint romio_ds_write=enable
        done
        echo "comparison $n: data sieving instead of collective buffering in writes"
        sides "$n"
    done ;;
esac
