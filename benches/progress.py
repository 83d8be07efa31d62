#!/usr/bin/env python3
"""What the bar's thread costs, in figures that other work on the machine does not blur: wake-ups, CPU time and instructions of that thread.

    benches/progress.py PROGRAM [SECONDS] [-- COMMAND...]

Runs COMMAND (default: one rank, the null backend, T = SECONDS) on a terminal of its own, finds the thread named `progress` of
PROGRAM, and reads what the kernel counted for it (/proc/PID/task/TID/status, schedstat; perf stat -t for instructions). One line:

    wake-ups/s, times it was taken off a CPU, CPU time of a wake-up, share of one core, instructions of a wake-up (user, kernel)
"""
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time


def thread_of(program):
    """PID and TID of the thread that draws."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.realpath(f"/proc/{pid}/exe") != program:
                continue
            for tid in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{tid}/comm") as comm:
                    if comm.read().strip() == "progress":
                        return int(pid), int(tid)
        except OSError:
            pass  # It ended meanwhile.
    return None


def counted(pid, tid):
    """Voluntary and involuntary switches, CPU time in ns."""
    with open(f"/proc/{pid}/task/{tid}/status") as status:
        lines = dict(line.split(":", 1) for line in status if ":" in line)
    with open(f"/proc/{pid}/task/{tid}/schedstat") as schedstat:
        cpu_ns = int(schedstat.read().split()[0])
    return int(lines["voluntary_ctxt_switches"]), int(lines["nonvoluntary_ctxt_switches"]), cpu_ns


def instructions(path):
    """By name, as far as this machine counts them."""
    found = {}
    with open(path) as told:
        for line in told:
            value, _, name, *_ = line.split(",") + [""] * 3
            if value.isdigit():
                found[name] = int(value)
    return found


def main():
    words = sys.argv[1:]
    command = words[words.index("--") + 1 :] if "--" in words else None
    words = words[: words.index("--")] if "--" in words else words
    if not words:
        sys.exit(__doc__)
    program, seconds = os.path.realpath(words[0]), words[1] if len(words) > 1 else "20"
    with tempfile.TemporaryDirectory() as directory:
        command = command or [program, "io", "-T", f"{seconds}s", "--backend", "null", "--path", directory]
        child, terminal = pty.fork()
        if child == 0:
            os.execvp(command[0], command + ["--progress", "bar"])
        begin, perf, thread, first, last = time.monotonic(), None, None, None, None
        told = os.path.join(directory, "perf")
        os.set_blocking(terminal, False)
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            try:
                os.read(terminal, 1 << 16)
            except OSError:
                pass
            thread = thread or thread_of(program)
            try:
                if thread:
                    last = (time.monotonic(), *counted(*thread))
                    first = first or last
                    if perf is None:
                        events = ["perf", "stat", "-x,", "-o", told, "-e", "instructions:u,instructions:k", "-t", str(thread[1])]
                        perf = subprocess.Popen(events, stderr=subprocess.DEVNULL)
            except OSError:
                pass  # It has drawn its last.
            if time.monotonic() - begin > 3600:
                os.kill(child, signal.SIGTERM)
            time.sleep(0.05)
        if last is None or last[0] - first[0] < 1:
            sys.exit("SKIPPED: no thread named progress was seen for a second")
        wall = last[0] - first[0]
        wakes, taken, cpu_ns = (after - before for after, before in zip(last[1:], first[1:]))
        line = f"{wakes / wall:.1f} wake-ups/s, {taken} times taken off, {cpu_ns / wakes / 1e3:.0f} us a wake-up, {cpu_ns / wall / 1e7:.3f} % of a core"
        if perf is not None:
            perf.send_signal(signal.SIGINT)
            perf.wait()
            counts = instructions(told)
            line += "".join(f", {value / wakes:.0f} {name}" for name, value in counts.items()) or ", instructions are not counted here"
        print(line)


if __name__ == "__main__":
    main()
