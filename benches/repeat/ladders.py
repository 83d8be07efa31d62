#!/usr/bin/env python3
"""Are the intervals of ratios honest? Ladders of one command after each other; how many intervals of types hold the median of all ratios.

    eval "$(scripts/env.sh mpich)" && cargo build --release
    benches/repeat/ladders.py DIR                            # 12 runs of 30 s, mpiio beside uring
    benches/repeat/ladders.py DIR --runs 20 --time 60s --options "--backend mpiio,posix,uring"
    benches/repeat/ladders.py --again OUT                    # the figures of results that are there

DIR is on the storage. For each backend, access method and type the ratio to the best backend, of the runs in which the same one was the best:
in how many of them its interval holds the median of these ratios. PROGRAM names another program, LAUNCH what stands behind `mpirun -n N`,
RANKS their number (2). BEFF_MPIRUN and CARGO_TARGET_DIR as from scripts/env.sh. Results stay in --out.
"""

import argparse
import collections
import glob
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile


def run(arguments, out):
    """One ladder into OUT.json."""
    program = os.environ.get("PROGRAM") or os.path.join(os.environ["CARGO_TARGET_DIR"], "release/beff-raw")
    command = [*shlex.split(os.environ["BEFF_MPIRUN"]), "-n", os.environ.get("RANKS", "2")]
    command += [*shlex.split(os.environ.get("LAUNCH", "")), program, "io", "--path", arguments.dir, "--out", out, "--quiet"]
    command += ["-T", arguments.time, *shlex.split(arguments.options)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=arguments.limit)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}: exit {done.returncode}\n{done.stderr}")


def ratios(path):
    """Of one result: the ratios of types to the best backend by place, how many have an interval, and the seconds of the run."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    found = {}
    for rung in result["derived"]["ladder"]["types"]:
        if rung["ratio"] and rung["backend"] != rung["best"]:
            place = (rung["backend"], rung["best"], rung["ranks"], rung["access"], rung["pattern_type"])
            found[place] = rung["ratio"]
    known = sum(ratio["interval"] is not None for ratio in found.values())
    print(f"{os.path.basename(path)}: {known} of {len(found)} ratios with an interval, {result['ending']['real_seconds']:.0f} s")
    return found


def report(paths):
    """Prints how many intervals hold the median, by access method and in all."""
    if not paths:
        sys.exit("no results")
    places = collections.defaultdict(list)
    for path in paths:
        for place, ratio in ratios(path).items():
            places[place].append(ratio)
    held, known, widths = collections.Counter(), collections.Counter(), []
    print(f"{'':34}median ratio  runs  intervals  hold it")
    for place, of in sorted(places.items()):
        if len(of) < 3:
            continue
        middle = statistics.median(ratio["value"] for ratio in of)
        intervals = [ratio["interval"] for ratio in of if ratio["interval"]]
        holds = sum(i["low"] <= middle <= i["high"] for i in intervals)
        held[place[3]] += holds
        known[place[3]] += len(intervals)
        widths += [(i["high"] - i["low"]) / 2 / middle for i in intervals]
        name = f"{place[0]}/{place[1]}, {place[2]}, {place[3]} {place[4]}"
        print(f"{name:34}{middle:12.3f}{len(of):6}{len(intervals):11}{holds:9}")
    for access in known:
        print(f"{access}: {held[access]} of {known[access]}")
    if widths:
        print(f"all: {held.total()} of {known.total()}, half width in the middle {100 * statistics.median(widths):.0f} %")


def main():
    """Runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", nargs="?", help="directory on the storage")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--time", default="30s", help="T of each backend")
    parser.add_argument("--options", default="--backend mpiio,uring", help="more options of each run")
    parser.add_argument("--out", help="where the results go (a new directory)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for one run")
    parser.add_argument("--again", metavar="OUT", help="results that are there")
    arguments = parser.parse_args()
    if arguments.again is None:
        if arguments.dir is None:
            parser.error("name a directory, or --again")
        arguments.again = arguments.out or tempfile.mkdtemp(prefix="ladders-", dir=os.environ.get("TMPDIR", "/var/tmp"))
        os.makedirs(arguments.again, exist_ok=True)
        for number in range(1, arguments.runs + 1):
            run(arguments, os.path.join(arguments.again, f"run-{number:02}"))
        print(f"results in {arguments.again}")
    report(sorted(glob.glob(os.path.join(arguments.again, "run-*.json"))))


if __name__ == "__main__":
    main()
