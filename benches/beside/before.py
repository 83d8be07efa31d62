#!/usr/bin/env python3
"""Two programs of beff-raw beside each other: what became slower from one to the other.

    eval "$(scripts/env.sh mpich)" && cargo build --release
    git worktree add ../old COMMIT && (cd ../old && CARGO_TARGET_DIR=$PWD/target cargo build --release)
    benches/beside/before.py ../old/target/release/beff-raw DIR

DIR is on the storage. In each turn both programs run once with each backend, the order changing from turn to turn; a turn is one pair. A line is
a backend, an access method and a chunk size: the geometric mean over its patterns, new / old, over the turns its geometric mean with the 95 %
interval (Student, on logarithms). Slower: the whole interval lies below 0.97. BEFF_MPIRUN, PROGRAM (the new one) and LAUNCH as in two_phase.py.
"""

import argparse
import math
import os
import shutil
import statistics
import tempfile

from two_phase import interval, launch, named, seconds


def rates(document):
    """MB/s by access method and chunk size, geometric mean over the patterns; a chunk of M_PART is named so."""
    logs = {}
    m_part = max(record["chunk_bytes"] for record in document["patterns"])
    for record in document["patterns"]:
        if record["moved_bytes"] and seconds(record):
            chunk = "M_PART" if record["chunk_bytes"] == m_part else named(record["chunk_bytes"])
            rate = record["moved_bytes"] / seconds(record) / 1e6
            logs.setdefault((record["access"], chunk), []).append(math.log(rate))
    return {key: math.exp(statistics.fmean(values)) for key, values in logs.items()}


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
    parser.add_argument("--limit", type=int, default=600, help="seconds that a run may take")
    arguments = parser.parse_args()
    new = os.environ.get("PROGRAM") or os.path.join(os.environ["CARGO_TARGET_DIR"], "release/beff-raw")

    pairs = {}
    for turn in range(arguments.turns):
        for backend in arguments.backends.split(","):
            sides = [(new, arguments.new_options.split()), (arguments.old, [])]
            found = {}
            for program, options in sides if turn % 2 else sides[::-1]:
                found[program] = run(program, arguments, ["--backend", backend, *options])
            for key in found[new].keys() & found[arguments.old].keys():
                pairs.setdefault((backend, *key), []).append((found[new][key], found[arguments.old][key]))

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
