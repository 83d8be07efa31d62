#!/usr/bin/env python3
"""Two-phase transfers beside the library's write_all, and what common decisions cost.

    eval "$(scripts/env.sh mpich)" && cargo build --release
    benches/beside/two_phase.py DIR                     # two-phase of uring beside write_all, types 0 and 4, 2 ranks
    benches/beside/two_phase.py DIR --decisions         # share of the decisions of each backend, 2 ranks and 4

DIR is on the storage. Runs (default 7) follow each other; in each both backends take turns within every pattern, so a run is one pair
for each of their patterns. First writes, their sync included. The ratio is the geometric mean over the pairs with its 95 % interval (Student, on
logarithms). Behind or before each run the ranks write files of their own (type 2, chunks of 1 MiB or of M_PART, whichever is faster in the
middle): what this storage takes of first writes. *Of own files* is two-phase beside it, *most* is it beside write_all: what a two-phase could
gain here. One number for all lines of a run; several patterns of a line are one there.

Shares are medians over the runs: of the time in the clock, for decisions all of it, what they cost themselves and the rest, which is waiting.
`--decisions` shows medians and the largest of 95 % of the patterns: the cost; with waiting; and *held up*, by how much the pattern was longer
than its slowest rank's own part. Other waiting is that ranks differ, while all make as many calls. Below stand the patterns beyond the 95 %,
by their waiting. BEFF_MPIRUN and CARGO_TARGET_DIR as from scripts/env.sh; PROGRAM names another program, LAUNCH what stands behind
`mpirun -n N` (e.g. --bind-to core; for more ranks than cores with Open MPI --bind-to core:overload-allowed).
"""

import argparse
import itertools
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

# 97.5 % quantiles of Student's t by degrees of freedom.
STUDENT = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
NUMBERS = itertools.count()
CHUNKS = (1024, 1032, 32768, 32776, 1048576)


def launch(arguments, directory, ranks, options):
    """The document of one run."""
    program = os.environ.get("PROGRAM") or os.path.join(os.environ["CARGO_TARGET_DIR"], "release/beff-raw")
    out = os.path.join(directory, f"out{next(NUMBERS)}")
    command = [*shlex.split(os.environ["BEFF_MPIRUN"]), "-n", str(ranks), *shlex.split(os.environ.get("LAUNCH", ""))]
    command += [program, "io", "--path", directory, "--out", out, "--quiet", "-T", arguments.time]
    command += ["--space", arguments.space, *options, *shlex.split(arguments.options)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=arguments.limit)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}: exit {done.returncode}\n{done.stderr}")
    with open(out + ".json", encoding="utf-8") as file:
        return json.load(file)


def seconds(record):
    """Time of the slowest rank, all intervals."""
    return sum(record["intervals"].values())


def interval(ratios):
    """Geometric mean and 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    t = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def named(chunk):
    """A chunk size as in the table of the patterns."""
    for unit, letter in ((1 << 20, "MB"), (1 << 10, "kB")):
        if chunk >= unit:
            return f"{chunk // unit} {letter}" + (f"+{chunk % unit}" if chunk % unit else "")
    return str(chunk)


def rate(record):
    """MB/s of the slowest rank's time."""
    return record["moved_bytes"] / seconds(record) / 1e6


def own_files(arguments, directory, ranks):
    """MB/s of first writes to a file of each rank, by the size of its large chunks; those that were run."""
    own = argparse.Namespace(**{**vars(arguments), "time": arguments.own_time, "options": arguments.own_options})
    result = launch(own, directory, ranks, ["--backend", "uring", "--types", "2", "--repeat", "off"])
    writes = [r for r in result["patterns"] if r["access"] == "write" and r["time_units"]]
    sizes = CHUNKS[-1], max(r["chunk_bytes"] for r in writes)
    return {r["chunk_bytes"]: rate(r) for r in writes if r["chunk_bytes"] in sizes and r["calls"]}


def faster(own_of_runs):
    """The size that is faster in the middle of all runs, of those that every run has. The faster one of each run would be too fast."""
    sizes = set.intersection(*(set(own) for own in own_of_runs))
    if not sizes:
        sys.exit("files of the ranks' own: no size was run in all runs; give more --own-time")
    return max(sizes, key=lambda size: statistics.fmean(math.log(own[size]) for own in own_of_runs))


def of_runs(pairs, ratio):
    """The ratio for each run: where it has several patterns, their geometric mean."""
    logs = {}
    for pair in pairs:
        logs.setdefault(pair["run"], []).append(math.log(ratio(pair)))
    return [math.exp(statistics.fmean(values)) for values in logs.values()]


def two_phase(arguments, directory):
    """The table of pairs."""
    pairs, ranks, own_of_runs = {}, arguments.ranks or 2, []
    # Where several patterns of a type have chunks of one size, each is a pair.
    options = ["--backend", "uring,mpiio", "--collective", "two-phase", "--types", "0,4", "--repeat", "off"]
    for run in range(arguments.runs):
        # In turns, so that what drifts with time hits both alike.
        own = own_files(arguments, directory, ranks) if run % 2 else None
        result = launch(arguments, directory, ranks, options)
        own = own or own_files(arguments, directory, ranks)
        own_of_runs.append(own)
        of_run = {}
        for record in result["patterns"]:
            key = record["pattern_type"], record["chunk_bytes"]
            if record["access"] == "write" and record["chunk_bytes"] in CHUNKS and record["time_units"] and record["calls"]:
                of_run.setdefault((key, record["pattern"]), {"run": run})[record["backend"]] = record
        for (key, _), both in of_run.items():
            if len(both) == 3:
                pairs.setdefault(key, []).append(both)
    own_chunk = faster(own_of_runs)
    beside = lambda pair: own_of_runs[pair["run"]][own_chunk]
    print(f"{ranks} ranks, -T {arguments.time}, {arguments.runs} runs: first writes, sync included; own files by {named(own_chunk)}")
    print(
        "type    chunk pairs  write_all two-phase own files MB/s | ratio [95 %]        | of own files [95 %]  | most [95 %]"
        "         | two-phase: decide (cost) room sync %"
    )
    for (pattern_type, chunk), both in sorted(pairs.items()):
        median = lambda name: statistics.median(rate(pair[name]) for pair in both)
        ratios = [
            "{:5.2f} [{:5.2f}, {:5.2f}]".format(*interval(values))
            for values in (
                [rate(pair["uring"]) / rate(pair["mpiio"]) for pair in both],
                of_runs(both, lambda pair: rate(pair["uring"]) / beside(pair)),
                of_runs(both, lambda pair: beside(pair) / rate(pair["mpiio"])),
            )
        ]
        ours = [pair["uring"] for pair in both]
        share = lambda value: 100 * statistics.median(value(record) / seconds(record) for record in ours)
        decide, room, sync = (
            share(lambda record, part=part: record["intervals"][part])
            for part in ("decide_seconds", "preallocate_seconds", "sync_seconds")
        )
        cost = share(lambda record: record["decision_cost_seconds"])
        print(
            f"{pattern_type:4} {named(chunk):>8} {len(both):5} {median('mpiio'):10.0f} {median('uring'):9.0f}"
            f" {statistics.median(map(beside, both)):9.0f}      | {' | '.join(ratios)}"
            f" | {decide:15.1f} ({cost:.1f}) {room:5.1f} {sync:5.1f}"
        )


def decisions(arguments, directory):
    """The shares of the decisions."""
    print(f"-T {arguments.time}, {arguments.runs} runs; % of the time in the clock, median and 95 % of the patterns")
    print("ranks backend   cost          with waiting   held up        patterns")
    for ranks in [arguments.ranks] if arguments.ranks else (2, 4):
        shares = {}
        for _ in range(arguments.runs):
            for backend in ("mpiio", "posix", "uring", "mmap"):
                result = launch(arguments, directory, ranks, ["--backend", backend])
                for record in result["patterns"]:
                    if record["calls"] and seconds(record) > 0:
                        parts = record["decision_cost_seconds"], record["intervals"]["decide_seconds"], record["imbalance_seconds"]
                        shares.setdefault(backend, []).append(([100 * value / seconds(record) for value in parts], record))
        for backend, found in shares.items():
            most = lambda ordered: ordered[max(0, math.ceil(0.95 * len(ordered)) - 1)]
            columns = [sorted(column) for column in zip(*(values for values, _ in found))]
            shown = "  ".join(f"{statistics.median(column):6.2f} {most(column):6.2f}" for column in columns)
            print(f"{ranks:5} {backend:8} {shown}  {len(found):7}")
            # Which patterns make the worst twentieth.
            for values, record in sorted(found, key=lambda pair: -pair[0][1]):
                if values[1] > most(columns[1]):
                    pattern = f"{record['access']}, type {record['pattern_type']}, {named(record['chunk_bytes'])}, pattern {record['pattern']}"
                    counts = f"{record['calls']} calls, {seconds(record):.2f} s"
                    print(" " * 22 + "         ".join(f"{value:6.2f}" for value in values) + f"   {pattern}, {counts}")


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", help="on the storage")
    parser.add_argument("--decisions", action="store_true", help="shares of the decisions instead of the pairs")
    parser.add_argument("--runs", type=int, default=7, help="runs, each a pair")
    parser.add_argument("--ranks", type=int, help="ranks of the runs (2; for decisions 2, then 4)")
    parser.add_argument("--time", default="30s", help="-T of each run")
    parser.add_argument("--own-time", default="6s", help="-T of the run with files of their own")
    parser.add_argument("--own-options", default="", help="more options of that run: those of --options about memory, room, direct I/O")
    parser.add_argument("--space", default="8G", help="--space of each run")
    parser.add_argument("--limit", type=float, default=900, help="seconds that a run may take")
    parser.add_argument("--options", default="", help="more options of beff-raw io, of the runs with both backends")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beside-two-phase.", dir=arguments.directory) as directory:
        (decisions if arguments.decisions else two_phase)(arguments, directory)


if __name__ == "__main__":
    main()
