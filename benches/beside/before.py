#!/usr/bin/env python3
"""Two programs of beff-raw beside each other: what became slower from one to the other.

    eval "$(scripts/env.sh mpich)" && cargo build --release
    git clone . ../old && (cd ../old && git checkout COMMIT && CARGO_TARGET_DIR=$PWD/target cargo build --release)
    benches/beside/before.py ../old/target/release/beff-raw DIR

DIR is on the storage. In each turn both programs run once with each backend, the order changing from turn to turn; a turn is one pair. A line is
a backend, an access method and a chunk size: new / old, the geometric mean over the patterns that time ends and both have run, and over the
turns with its 95 % interval (Student, on logarithms). Slower: the whole interval lies below 0.97. BEFF_MPIRUN, PROGRAM (the new one) and LAUNCH
as in two_phase.py. A program beside itself: both paths the same, --old-options "--repeat off".
"""

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile

from two_phase import interval, launch, named, rate, seconds


def rates(document):
    """MB/s of the patterns that time ends, by access method and number, and the names of their chunk sizes."""
    timed = [r for r in document["patterns"] if r["time_units"]]
    m_part = max(r["chunk_bytes"] for r in timed)
    name = lambda r: "M_PART" if r["chunk_bytes"] == m_part else named(r["chunk_bytes"])
    return {(r["access"], r["pattern"]): (name(r), rate(r)) for r in timed if r["moved_bytes"] and seconds(r)}


def pair(new, old):
    """New / old and the middle of both, by access method and chunk size; of the patterns that both have run."""
    logs = {}
    for key in new.keys() & old.keys():
        (chunk, of_new), (_, of_old) = new[key], old[key]
        logs.setdefault((key[0], chunk), []).append((math.log(of_new), math.log(of_old)))
    return {key: [math.exp(statistics.fmean(side)) for side in zip(*values)] for key, values in logs.items()}


def run(program, arguments, options):
    """Rates of one run, on files of its own."""
    os.environ["PROGRAM"] = program
    directory = tempfile.mkdtemp(prefix="beff-before-", dir=arguments.directory)
    try:
        return rates(launch(arguments, directory, arguments.ranks, options))
    finally:
        shutil.rmtree(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="the program before")
    parser.add_argument("directory")
    parser.add_argument("--backends", default="uring,posix,mpiio")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--time", default="15s", help="T of a run")
    parser.add_argument("--space", default="2G")
    parser.add_argument("--options", default="--memory-per-process 512M", help="more options of both programs")
    parser.add_argument("--new-options", default="--repeat off", help="options that only the new program knows")
    parser.add_argument("--old-options", default="", help="options of the old program alone")
    parser.add_argument("--limit", type=int, default=600, help="seconds that a run may take")
    arguments = parser.parse_args()
    new = os.environ.get("PROGRAM") or os.path.join(os.environ["CARGO_TARGET_DIR"], "release/beff-raw")

    pairs = {}
    for turn in range(arguments.turns):
        for backend in arguments.backends.split(","):
            sides = {"new": (new, arguments.new_options.split()), "old": (arguments.old, arguments.old_options.split())}
            found = {}
            for side in sorted(sides, reverse=bool(turn % 2)):
                program, options = sides[side]
                found[side] = run(program, arguments, ["--backend", backend, *options])
            for key, both in pair(found["new"], found["old"]).items():
                pairs.setdefault((backend, *key), []).append(both)

    if not pairs:
        sys.exit("no pattern was run by both programs; give more --time or --space")
    methods = ("write", "rewrite", "read")
    slower = 0
    for key in sorted(pairs, key=lambda k: (k[0], methods.index(k[1]), k[2])):
        mean, low, high = interval([a / b for a, b in pairs[key]])
        news, olds = (statistics.median(side) for side in zip(*pairs[key]))
        word = "slower" if high < 0.97 else "faster" if low > 1 / 0.97 else ""
        slower += word == "slower"
        print(f"{key[0]:6} {key[1]:8} {key[2]:10} {mean:5.2f} [{low:.2f}, {high:.2f}]  {news:6.0f} | {olds:6.0f} MB/s  {word}")
    print(f"{slower} of {len(pairs)} lines slower by more than 3 %")


if __name__ == "__main__":
    main()
