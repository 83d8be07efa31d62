#!/usr/bin/env bash
# Is the interval honest? Runs of one command after each other; how many of their intervals hold the median of all values.
#
#   benches/repeat/honest.sh DIR [COUNT] [T] [OPTIONS...]
#   benches/repeat/honest.sh /scratch                        30 runs of 2m
#   benches/repeat/honest.sh /scratch 30 20s --backend uring
#   benches/repeat/honest.sh /scratch 30 2m --long 15m       one run of 15m more: is its value within 5 %, by the intervals?
#
# PROGRAM (release build), RANKS (2), BEFF_MPIRUN. Results stay in $OUT (a new directory), so that the figures can be made again:
#   OUT=directory benches/repeat/honest.sh --again
# Intervals of ratios of several backends: ladders.py.
# Only on a quiet machine: what others do changes from run to run, and is no fault of an interval.
set -euo pipefail

again() {
    local files=("$1"/run-*.json)
    [ -e "${files[0]}" ] || { echo "no results in $1" >&2; exit 1; }
    jq -rn '
        def median: sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2;
        def shown: . * 100 | round / 100;
        [inputs | . as $run | (.derived.intervals.values[0] // null) as $i
            | {file: input_filename, value: (.derived.systems[0].values["release_" + (.config.release | sub("[.]"; "_"))]),
               low: $i.low, high: $i.high, repeats: ($run.repetitions | length), pooled: $i.pooled_share,
               types: [.derived.types[] as $t | .derived.intervals.types[]
                   | select(.access == $t.access and .pattern_type == $t.pattern_type)
                   | {name: "\(.access) \(.pattern_type)", value: $t.mb_per_second, low, high}]}]
        | . as $runs | ([.[].value] | median) as $middle
        | "run value low high repeats pooled",
          (.[] | [(.file | sub(".*/"; "")), (.value | shown), (.low // 0 | shown), (.high // 0 | shown), .repeats, (.pooled // 0 | shown)] | join(" ")),
          "",
          "median of \($runs | length) values: \($middle | shown) MB/s; (max - min) / median: \(([.[].value] | (max - min)) / $middle | shown)",
          "intervals that hold it: \([.[] | select(.low != null and .low <= $middle and $middle <= .high)] | length) of \($runs | length), \([.[] | select(.low == null)] | length) runs without an interval",
          "half width, median: \([.[] | select(.low != null) | (.high - .low) / 2 / .value] | if length > 0 then median * 100 | shown else "-" end) %",
          "",
          "type: held of those known",
          ([.[].types[]] | group_by(.name)[] | ([.[].value] | median) as $m
              | "\(.[0].name): \([.[] | select(.low <= $m and $m <= .high)] | length) of \(length)")
    ' "${files[@]}"
    if [ -s "$1/long.json" ]; then
        jq -rn --slurpfile long "$1/long.json" '
            def value: .derived.systems[0].values["release_" + (.config.release | sub("[.]"; "_"))];
            [inputs | {value: value, low: .derived.intervals.values[0].low, high: .derived.intervals.values[0].high}]
            | ($long[0] | value) as $l | ($long[0].derived.intervals.values[0]) as $i
            | "",
              "long run: \($l) [\($i.low // "-"), \($i.high // "-")]",
              "runs whose value is within 5 % of it: \([.[] | select((.value / $l - 1) | fabs <= 0.05)] | length) of \(length)",
              "runs whose interval meets that of the long run: \([.[] | select(.low != null and $i != null and .low <= $i.high and $i.low <= .high)] | length) of \(length)"
        ' "${files[@]}"
    fi
}

if [ "${1-}" = --again ]; then
    again "${OUT:?OUT is the directory with the results}"
    exit
fi
dir=${1:?usage: honest.sh DIR [COUNT] [T] [OPTIONS...]}
count=${2:-30}
time=${3:-2m}
shift $(($# < 3 ? $# : 3))
long=
if [ "${1-}" = --long ]; then
    long=$2
    shift 2
fi
program=${PROGRAM:-${CARGO_TARGET_DIR:-target}/release/beff-raw}
out=${OUT:-$(mktemp -d "${TMPDIR:-/var/tmp}/honest-XXXXXX")}
mkdir -p "$out"
run() {
    # shellcheck disable=SC2086 # the launcher has arguments of its own
    ${BEFF_MPIRUN:-mpirun} -n "${RANKS:-2}" "$program" io --path "$dir" -T "$1" --repeat auto --quiet --out "$out/$2" "${@:3}" >"$out/$2.txt"
}
for n in $(seq -w 1 "$count"); do
    run "$time" "run-$n" "$@"
    grep -h '^b_eff_io (' "$out/run-$n.txt" || true
done
[ -z "$long" ] || run "$long" long "$@"
echo "results in $out"
again "$out"
