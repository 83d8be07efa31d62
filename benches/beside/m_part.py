#!/usr/bin/env python3
"""The best setting of our uring driver beside the best of fio, with chunks of M_PART: both are found by a search.

    eval "$(scripts/env.sh mpich)"
    benches/beside/m_part.py DIR [--jobs 1] [--m-part 8M] [--pairs 7]

The search: fio with io_uring past the page cache, huge pages, registered file and memory, over chunk (split of M_PART), depth, fallocate.
Ours (`cargo bench --bench fio -- --search`, room native): what a run tries in its calibration, depths with whole chunks and with operations of 1 and 2 MiB.
Every setting runs three times in turns, the best median wins. Then both best settings take turns. The ratio is the geometric mean over the pairs
with its 95 % interval (Student, on logarithms). fio's sync is inside of its time (one completion is waited for, so it does sync).
"""

import argparse
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from two_phase import interval

SPLITS = (1, 4, 16)
DEPTHS = (2, 4, 8, 16)
ROOMS = ("none", "native")
BYTES_IN_FLIGHT = 128 << 20


def size(text):
    number, unit = re.fullmatch(r"(\d+)([kKMG]?)", text).groups()
    return int(number) << {"": 0, "k": 10, "K": 10, "M": 20, "G": 30}[unit]


def fio(directory, access, setting, arguments):
    """MB/s of one run of fio, its files as long as those of our side."""
    chunk, depth, room = setting
    files = [os.path.join(directory, f"f.{job}") for job in range(arguments.jobs)]
    if access == "write":
        for file in filter(os.path.exists, files):
            os.unlink(file)
    command = ["fio", "--name=f", f"--directory={directory}", "--filename_format=f.$jobnum", f"--numjobs={arguments.jobs}"]
    command += [f"--size={arguments.bytes}", f"--bs={chunk}", f"--iodepth={depth}", f"--fallocate={room}"]
    command += ["--rw=read" if access == "read" else "--rw=write", f"--overwrite={int(access == 'rewrite')}"]
    command += [f"--end_fsync={int(access != 'read')}", "--direct=1", "--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1"]
    command += ["--invalidate=0", "--gtod_reduce=1", "--refill_buffers=0", "--zero_buffers=0", "--scramble_buffers=0"]
    command += ["--group_reporting=1", "--output-format=json"]
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    job = json.loads(done.stdout)["jobs"][0]
    side = job["read" if access == "read" else "write"]
    return side["io_bytes"] / 1e3 / max(side["runtime"] - 0.5, 0.5)


def ours(directory, access, arguments, options):
    """MB/s of our driver, the median of two pairs of its row, and how it moved the chunks."""
    command = ["cargo", "bench", "--quiet", "--bench", "fio", "--", "--path", directory, "--pairs", "2", "--m-part", str(arguments.chunk)]
    command += ["--jobs", str(arguments.jobs), "--seconds", "0.25", "--only", f"uring,{named(arguments.chunk)},{access},native"]
    done = subprocess.run(command + options, capture_output=True, text=True, timeout=300)
    # A write is in the name of a rewrite.
    rows = [line for line in done.stdout.splitlines() if line.startswith("uring direct") and f" {access} " in line]
    way = re.search(r"depth (\d+), (?:whole|operations of (\d+))$", rows[0]) if rows else None
    if done.returncode or not way:
        sys.exit(f"{' '.join(command + options)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return float(rows[0].split()[7]), int(way[1]), int(way[2] or 0)


def best_of_ours(directory, access, arguments):
    """Options that name what the search found, and what to call it."""
    _, depth, operation = ours(directory, access, arguments, ["--search"])
    in_flight = depth * (operation or arguments.chunk)
    options = ["--depth", str(depth), "--operation", str(operation), "--ring", str(in_flight)]
    return options, [depth, operation], f"{(operation or arguments.chunk) >> 10} KiB, depth {depth}"


def named(chunk):
    return f"{chunk >> 20}MiB" if chunk >= 1 << 20 else f"{chunk >> 10}KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--m-part", type=size, default=8 << 20, dest="chunk")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--bytes", type=size, default=512 << 20, help="of each file of fio")
    arguments = parser.parse_args()
    if arguments.chunk <= 1 << 20:
        sys.exit("--m-part: chunks of 1 MiB or less are rows of the bench; name a larger one")
    if not shutil.which("fio"):
        sys.exit("fio is not installed")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        for access in ("write", "rewrite", "read"):
            chunks = [arguments.chunk // split for split in SPLITS]
            settings = [s for s in itertools.product(chunks, DEPTHS, ROOMS) if s[0] * s[1] <= BYTES_IN_FLIGHT]
            if access != "write":
                settings = [s for s in settings if s[2] == "native"]
            found = {setting: [] for setting in settings}
            for _ in range(3):
                for setting in settings:
                    found[setting].append(fio(directory, access, setting, arguments))
            best = max(settings, key=lambda s: statistics.median(found[s]))
            options, found_way, way = best_of_ours(directory, access, arguments)
            pairs = []
            for _ in range(arguments.pairs):
                speed, *used = ours(directory, access, arguments, options)
                if used != found_way:
                    sys.exit(f"ours ran with depth and operation {used} in place of {found_way}")
                pairs.append((speed, fio(directory, access, best, arguments)))
            ratio, low, high = interval([mine / other for mine, other in pairs])
            print(
                f"{access:<8} best of {len(settings)} settings of fio: {best[0] >> 10} KiB, depth {best[1]}, {best[2]}; ours {way}; "
                f"ours {statistics.median(p[0] for p in pairs):.0f}, fio {statistics.median(p[1] for p in pairs):.0f} MB/s, "
                f"ours / fio {ratio:.3f} [{low:.3f}, {high:.3f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
