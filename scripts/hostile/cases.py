"""The cases of the campaign, as data. campaign.py runs and judges them."""
import random
from dataclasses import dataclass, field

# Short runs: under a second on an idle machine. {path}, {out}: made for each case.
IO = ["-T", "1s", "--memory-per-process", "64M", "--space", "80M", "--types", "2,3", "--verify", "full"]
IMB = ["imb", "--msglog", "4:12", "--iter", "4"]
WRITES, READS = ["P_Write_Indv", "S_Write_Expl", "C_Write_Shared"], ["P_Read_Expl", "S_Read_Indv", "C_Read_Indv"]
COMM = ["comm", "--quick", "-T", "1s", "--families", "ping-pong,ring", "--memory-per-process", "1M"]
# Long enough to be met in the middle.
LONG = {"io": ["-T", "6s", "--memory-per-process", "64M", "--space", "150M"],
        "imb": ["imb", "--msglog", "18:20", "--iter", "400", "-T", "1s", "P_Write_Indv", "C_Read_Shared", "S_Write_Expl"],
        "comm": ["comm", "-T", "5s", "--memory-per-process", "64M"]}
BACKENDS = {"io": ["mpiio", "posix", "uring", "mmap"], "imb": ["mpiio", "posix", "uring"], "comm": [None]}
ERROR_TEXT = {"eio": "Input/output error|MPI_ERR_|os error 5", "enospc": "No space left|NO_SPACE|MPI_ERR_",
              "eacces": "Permission denied|MPI_ERR_", "emfile": "Too many open|MPI_ERR_", "edquot": "quota|MPI_ERR_"}


@dataclass
class Case:
    name: str
    bench: str
    args: list
    exits: tuple = (0, 1, 2, 3)    # codes that are right
    says: str = ""                 # expression that a failed run must show
    shim: str = ""                 # rules for the shim
    fuse: str = None               # rules for the file system; "" is an honest one
    env: dict = field(default_factory=dict)
    wrap: str = ""                 # bash, before each rank: `ulimit -n 20`
    around: str = ""               # bash, before the launcher, in mount namespace of its own
    streams: str = ""              # redirections of the launcher
    during: tuple = ()             # (action, argument, fraction of the usual time)
    damage: bool = False           # data is damaged: if that was reached, exit 3 or 1, never complete
    must_fail: bool = False        # an error is given that nobody may forget: if that was reached, exit is not 0
    keeps: bool = False            # the run may leave its directory (SIGKILL)
    path: bytes = None             # name of the --path directory
    out: bytes = None              # name of the --out prefix
    extra: list = field(default_factory=list)
    launchers_code: bool = False   # the code is that of a launcher that got a signal itself: Hydra ends with 0
    silent: bool = False           # the launcher itself is ended: nobody is there to say anything


def bench_args(bench, backend):
    args = list({"io": IO, "imb": IMB + WRITES + READS, "comm": COMM}[bench])
    return args + (["--backend", backend] if backend else [])


def benches():
    return [(b, k) for b in ("io", "imb", "comm") for k in BACKENDS[b]]


# Damage that nobody can see is none: in what existing files held before they are overwritten, and in reads into one buffer but the
# last one (docs/results.md).
IMB_LOOKS = ["--file", "new", "--buffers", "cold"]


def shim(count, rng):
    """Errors, short transfers and damage at chosen and random calls."""
    hard, soft, damage = ["eio", "enospc", "edquot"], ["eintr", "eagain", "short", "nothing"], ["flip", "zero", "swap", "stale", "misplace"]
    for _ in range(count):
        bench, backend = rng.choice([b for b in benches() if b[1] != "mmap"])
        kind = rng.choice(["pwrite", "pread", "pwrite", "pread", "fsync", "open", "journal", "truncate"])
        fault = rng.choice(hard + soft + (damage if kind in ("pwrite", "pread") else []))
        if kind in ("fsync", "open", "truncate", "journal"):
            fault = rng.choice(hard + ["eacces", "emfile"]) if kind == "open" else rng.choice(["eio", "enospc"])
        call, where = kind, "beff-raw-"
        if bench == "comm" or kind == "journal":
            call, where = "write", "out.json"
            fault = rng.choice(["eio", "enospc"])
        if backend == "uring" and kind in ("pwrite", "pread"):
            call = {"pwrite": "uring_write", "pread": "uring_read"}[kind]
        # The fillers of rows, the calibration and the trial of a backend have files of their own names; damage is only where data is compared.
        if fault in damage:
            where = "type" if bench == "io" else "/row"
        nth = rng.choice([1, 1, 2, 3, rng.randint(1, 12), rng.randint(1, 40)])
        rule = f"{call}:{fault}:nth={nth}:path={where}:rank={0 if call == 'write' else rng.randint(0, 1)}"
        if fault in ("eintr", "eagain") and rng.random() < .3:
            rule += ":times=0"
        if fault in damage:
            rule += ":but=t.dat"  # data of trial rows is nobody's
        name = f"{bench} {backend or ''} {rule}"
        text = ERROR_TEXT.get(fault, "")
        args = bench_args(bench, backend) + (IMB_LOOKS if bench == "imb" and fault in damage else [])
        # A journal that breaks is said, and the run goes on: the documents have all of it.
        lost = fault in hard and kind in ("pwrite", "pread", "fsync") and call != "write"
        yield Case(name, bench, args, shim=rule, damage=fault in damage, must_fail=lost,
                   says=text if lost or call == "write" else "")


def fallocate(count, rng):
    for _ in range(count):
        fault = rng.choice(["enospc", "eio", "eopnotsupp", "enosys", "eintr"])
        rule = f"fallocate:{fault}:nth={rng.randint(1, 6)}:times={rng.choice([0, 1])}:path=type"
        yield Case(f"io mmap {rule}", "io", bench_args("io", "mmap"), shim=rule, must_fail=fault in ("enospc", "eio"),
                   says=ERROR_TEXT.get(fault, ""))


def fuse(count, rng):
    """A file system that lies and fails at write, fsync, close, open, read."""
    for _ in range(count):
        bench, backend = rng.choice([b for b in benches() if b[0] != "comm"])
        call = rng.choice(["write", "write", "fsync", "fsync", "flush", "read", "create", "open", "statfs"])
        faults = {"write": ["eio", "enospc", "short", "flip", "zero", "swap", "stale", "misplace"], "fsync": ["eio", "stale"],
                  "read": ["eio", "flip", "zero", "short"]}.get(call, ["eio"])
        fault = rng.choice(faults)
        damage = fault in ("flip", "zero", "swap", "stale", "misplace")
        where = ("type" if bench == "io" else "row") if damage else ""
        rule = f"{call}:{fault}:nth={rng.randint(1, 60)}" + (f":path={where}" if where else "") + (":but=t.dat" if damage else "")
        env = {"LIAR_DIRECT": "1"} if rng.random() < .4 and backend != "mmap" else {}
        # What is damaged behind a page cache is seen if the pages are read again: only without a cache it must be. A close that fails after a sync that did not lost nothing.
        judged = damage and (call == "write" or bool(env))
        # The kernel makes several requests of one large write. If a later one fails it tells a short write, not the error; the
        # program goes on behind it, and the next try works: nothing is lost.
        split = backend == "uring"
        args = bench_args(bench, backend) + (IMB_LOOKS if bench == "imb" and damage else [])
        yield Case(f"{bench} {backend} {rule} {'direct' if env else 'cached'}", bench, args, fuse=rule, env=env,
                   damage=judged, must_fail=fault in ("eio", "enospc") and (call == "fsync" or call == "write" and not split) and backend != "mmap",
                   exits=(0, 1, 2, 3) if backend != "mmap" else (0, 1, 2, 3, 7, 135))


def signals(count, rng):
    """Signals at random moments, to the launcher, to one rank, to all ranks."""
    for _ in range(count):
        bench = rng.choice(["io", "io", "imb", "comm"])
        backend = rng.choice(BACKENDS[bench])
        signal = rng.choice(["INT", "TERM", "KILL", "STOP+CONT", "HUP", "XCPU", "TERM+TERM", "INT+KILL"])
        target = rng.choice(["launcher", "rank", "ranks"])
        args = LONG[bench] + (["--backend", backend] if backend else [])
        hard = signal in ("KILL", "XCPU", "HUP", "INT+KILL") or target == "launcher"
        # Launchers have codes of their own for a signal: 128 + N, or N.
        codes = (0, 1, 2, 3, 130, 143, 129, 137, 152, 9, 15, 2, 24, 255, 246, 4, 7, -2, -15, -9, -1, -24)
        yield Case(f"{bench} {backend or ''} {signal} to {target}", bench, args, exits=codes if signal != "STOP+CONT" else (0, 1),
                   during=(signal, target, rng.random()), keeps=hard,
                   silent=target == "launcher", launchers_code=target == "launcher" and signal != "STOP+CONT")


def directory(count, rng):
    """The run directory exchanged, renamed, emptied; files of others take its place."""
    what = ["rename", "exchange", "symlink", "empty", "remove", "file-symlink", "foreign-file", "path-rename", "truncate"]
    for i in range(count):
        bench = rng.choice(["io", "imb"])
        backend = rng.choice(BACKENDS[bench])
        action = what[i % len(what)]
        codes = (0, 1, 2, 3) if backend != "mmap" else (0, 1, 2, 3, 7, 135, 134)
        yield Case(f"{bench} {backend} {action}", bench, LONG[bench] + ["--backend", backend], exits=codes,
                   during=(action, None, rng.random()), keeps=True)


def limits(count, rng):
    """Files, memory, file size, /dev/shm, /proc, streams, space."""
    made = []
    for bench, backend in benches():
        def add(what, **more):
            made.append(Case(f"{bench} {backend or ''} {what}", bench, bench_args(bench, backend), **more))
        for n in (8, 16, 32, 48, 64, 96):
            add(f"ulimit -n {n}", wrap=f"ulimit -n {n}", exits=(0, 1, 2, 3, 15, 255, 8, 127, 7, 134, 139, 6))
        for kib in (50_000, 200_000, 400_000, 1_000_000):
            add(f"ulimit -v {kib}", wrap=f"ulimit -v {kib}", exits=(0, 1, 2, 3, 15, 255, 127, 134, 6, 7, 8, 139))
        for kib in (0, 1, 64, 4096):
            # 7: MPICH's own shared memory in MPI_Init. 15: Hydra ends the others.
            add(f"ulimit -f {kib}", wrap=f"ulimit -f {kib}", exits=(0, 1, 2, 3, 7, 15))
        for size in ("4k", "1M", "16M"):
            add(f"/dev/shm of {size}", around=f"mount -t tmpfs -o size={size} tmpfs /dev/shm", exits=(0, 1, 2, 3, 7, 135, 15, 255, 134, 143))
        add("no /proc", around="mount -t tmpfs tmpfs /proc", exits=(0, 1, 2, 3, 15, 255, 213))
        for streams in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"):
            # Without any stream the launcher of Open MPI fails in ways of its own, with any program.
            add(f"streams {streams}", streams=streams, exits=(0, 1, 2, 3, 255, 213, 138))
        if bench != "comm":
            for size in ("0", "64k", "8M", "40M"):
                add(f"file system of {size}", around=f"mount -t tmpfs -o size={size.replace('0', '4k') if size == '0' else size} tmpfs $BEFF_PATH")
        add("--out on a full file system", around="mount -t tmpfs -o size=12k tmpfs $BEFF_OUT_DIR")
        add("--out on a small file system", around="mount -t tmpfs -o size=48k tmpfs $BEFF_OUT_DIR")
    rng.shuffle(made)
    return made[:count]


NAMES = [b"new\nline", b"tab\tand \x1b[31mred", b"\x07bell", b"not-utf8-\xff\xfe", b"\xc3", b"x" * 255, b"x" * 180, b"-dash", b"--help",
         b"two words", b"quote'\"", b"`id`$(id)", b"*?[a]", b"back\\slash", b"%s%n%d", b"\xe2\x80\xae-rtl", "ünïcödé".encode(), b"\x7fdel",
         b"semi;colon", b"comma,equals=", b"#hash", b"~", b"a:b", b" lead", b"trail ", b"\xc2\x9b31m", b"posix:", b"x" * 240 + b"\xff"]


def names(count, rng):
    made = []
    for bench, backend in benches():
        for name in NAMES:
            for place in ("path", "out", "run-dir", "file", "argument"):
                args = bench_args(bench, backend)
                codes = (0, 1, 2)
                if place == "path" and bench != "comm":
                    made.append(Case(f"{bench} {backend} --path {name!r:.40}", bench, args, path=name, exits=codes))
                elif place == "out":
                    made.append(Case(f"{bench} {backend or ''} --out {name!r:.40}", bench, args, out=name, exits=codes))
                elif place == "run-dir" and bench != "comm":
                    made.append(Case(f"{bench} {backend} --run-dir {name!r:.40}", bench, args, extra=[b"--run-dir=" + name], exits=codes))
                elif place == "file":
                    option = {"io": b"--hints=", "imb": b"--msglen=", "comm": b"--rmax="}[bench]
                    made.append(Case(f"{bench} {backend or ''} {option.decode()}{name!r:.40}", bench, args, extra=[option + name], exits=(1, 2)))
                elif place == "argument":
                    made.append(Case(f"{bench} {backend or ''} argument {name!r:.40}", bench, args, extra=[name], exits=codes))
    rng.shuffle(made)
    return made[:count]


GROUPS = {"shim": (shim, 400), "fallocate": (fallocate, 30), "fuse": (fuse, 250), "signals": (signals, 250),
          "directory": (directory, 90), "limits": (limits, 1000), "names": (names, 300)}


def cases(group, count, seed):
    make, usual = GROUPS[group]
    return list(make(count or usual, random.Random(f"{seed} {group}")))
