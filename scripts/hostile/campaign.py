#!/usr/bin/env python3
"""A hostile day: faults, lies, signals, limits, names and damage, and what becomes of the program. See README.md."""
import argparse, collections, json, os, re, shutil, signal, subprocess, sys, tempfile, time
import cases as table
import mutate

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PANIC = re.compile(r"panicked at|RUST_BACKTRACE|stack overflow|SIGSEGV|Segmentation fault|memory allocation of \d+ bytes failed|double free")
RAW = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
PRECIOUS = b"precious\n"


def alone():
    """Again in namespaces of our own: every process, mount and piece of shared memory is ours, and goes away with us."""
    if os.environ.get("BEFF_ALONE"):
        subprocess.run("mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm", shell=True, check=True)
        return
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, *sys.argv]
    os.environ["BEFF_ALONE"] = "1"
    os.execvp("unshare", command)


def environment(mpi):
    text = subprocess.run([f"{ROOT}/scripts/env.sh", mpi], capture_output=True, text=True, check=True).stdout
    shown = subprocess.run(["bash", "-c", f"{text}\nenv -0"], capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in shown.split("\0") if "=" in line)


def built(work):
    for source, flags in (("shim", ["-shared", "-fPIC", "-ldl"]), ("liar", [])):
        target = f"{work}/{source}" + (".so" if source == "shim" else "")
        subprocess.run(["cc", "-O1", "-o", target, f"{HERE}/{source}.c", *flags], check=True)


def processes(mark):
    """Numbers of the processes that carry the mark of a case."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/stat") as s:
                if mark.encode() in f.read() and s.read().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def is_rank(pid, program):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            text = f.read()
        is_own = os.path.samefile(f"/proc/{pid}/exe", program)
        return is_own and (b"PMI_RANK=" in text or b"OMPI_COMM_WORLD_RANK=" in text)
    except OSError:
        return False


class Sandbox:
    """The files of one case, and what they must be afterwards."""

    def __init__(self, work, number, case):
        self.dir = f"{work}/case-{number}".encode()
        shutil.rmtree(self.dir, ignore_errors=True)
        self.path = self.dir + b"/disk"
        self.out_dir, self.log = self.dir + b"/out", self.dir + b"/log"
        self.other = self.dir + b"/other"
        for d in (self.path, self.out_dir, self.log, self.other):
            os.makedirs(d)
        self.mount = self.path
        if case.path is not None and b"/" not in case.path:
            self.path += b"/" + case.path
            os.makedirs(self.path, exist_ok=True)
        self.prefix = self.out_dir + b"/" + (case.out or b"out")
        self.precious = {}
        if case.fuse is None and "BEFF_PATH" not in case.around:
            for place in (self.path, self.other):
                for name in (b"thesis.txt", b"beff-raw-thesis"):
                    self.precious[place + b"/" + name] = PRECIOUS
        self.precious[self.other + b"/n2-type2-separate-rank0000000.dat"] = PRECIOUS
        for name, text in self.precious.items():
            with open(name, "wb") as f:
                f.write(text)

    def run_dir(self):
        try:
            names = [n for n in os.listdir(self.path) if n.startswith(b"beff-raw-2")]
        except OSError:
            return None
        return self.path + b"/" + names[0] if names else None

    def disturb(self, action):
        """Exchanges what the run works on."""
        run = self.run_dir()
        if not run:
            return False
        away = self.dir + b"/away"
        try:
            if action == "path-rename":
                os.rename(self.path, away)
                self.precious = {k.replace(self.path, away): v for k, v in self.precious.items()}
            elif action in ("rename", "exchange", "symlink"):
                os.rename(run, away)
                if action == "symlink":
                    os.symlink(self.other, run)
                if action == "exchange":
                    for sub in [b""] + [b"/" + d for d in os.listdir(away)]:
                        if sub and not os.path.isdir(away + sub):
                            continue
                        os.makedirs(run + sub, exist_ok=True)
                        self.plant(run + sub + b"/thesis.txt")
            elif action == "remove":
                shutil.rmtree(run, ignore_errors=True)  # the ranks may make files meanwhile
            else:
                for base, _, files in os.walk(run):
                    if action == "foreign-file":
                        self.plant(base + b"/thesis.txt")
                    for name in files:
                        name = base + b"/" + name
                        if action == "truncate":
                            os.truncate(name, 0)
                        if action in ("empty", "file-symlink"):
                            os.unlink(name)
                        if action == "file-symlink":
                            os.symlink(self.other + b"/thesis.txt", name)
        except FileNotFoundError:
            pass  # the run was quicker
        return True

    def plant(self, name):
        with open(name, "wb") as f:
            f.write(PRECIOUS)
        self.precious[name] = PRECIOUS

    def touched(self):
        for name, text in self.precious.items():
            try:
                with open(name, "rb") as f:
                    if f.read() != text:
                        return name
            except OSError:
                return name
        return None


def command_line(case, box, program, launcher):
    words = [w if isinstance(w, bytes) else w.encode() for w in case.args]
    if case.bench != "comm":
        words += [b"--path=" + (box.path if case.path is None else box.path)]
    words += [b"--out=" + box.prefix, b"--quiet", *[w if isinstance(w, bytes) else w.encode() for w in case.extra]]
    ranks = [program, *words]
    if case.wrap:
        ranks = ["bash", "-c", case.wrap + '; exec "$0" "$@"', *ranks]
    line = [*launcher, "-n", "2", *ranks]
    steps = [case.around] if case.around else []
    if steps or case.streams:
        line = ["bash", "-c", " && ".join(steps + [f'exec "$0" "$@" {case.streams}']), *line]
        if steps:
            line = ["unshare", "--mount", *line]
    return line


def act(case, box, mark, usual, program):
    """What happens while the run is under way. False: the run was over before."""
    what, target, fraction = case.during
    begin = time.time()
    while time.time() - begin < 10 and not (case.bench == "comm" or box.run_dir()):
        time.sleep(.01)
    time.sleep(.05 + fraction * usual)
    if target is None:
        return box.disturb(what)
    found = processes(mark)
    ranks = [pid for pid in found if is_rank(pid, program)]
    if not ranks:
        return False
    chosen = {"launcher": [min(found)], "rank": ranks[-1:], "ranks": ranks}[target]
    for i, name in enumerate(what.split("+")):
        time.sleep(.3 * i)
        for pid in chosen:
            try:
                os.kill(pid, getattr(signal, "SIG" + name))
            except ProcessLookupError:
                pass
    return True


def run(case, number, work, program, launcher, env, limit):
    """Runs a case; (reached, trouble)."""
    box = Sandbox(work, number, case)
    mark = f"BEFF_CASE={os.getpid()}-{number}"
    env = dict(env, **case.env, BEFF_CASE=mark.split("=")[1], BEFF_PATH=box.path.decode("utf-8", "surrogateescape"),
               BEFF_OUT_DIR=box.out_dir.decode(), BEFF_SHIM_SEED=str(number))
    liar = None
    if case.fuse is not None:
        more = dict(os.environ, **case.env, LIAR_LOG=(box.log + b"/liar").decode())
        liar = subprocess.Popen([f"{work}/liar", box.mount, case.fuse, str(number)], env=more)
        time.sleep(.15)
    if case.shim:
        env.update(BEFF_SHIM=case.shim, BEFF_SHIM_LOG=box.log.decode(), LD_PRELOAD=f"{work}/shim.so")
    # A full or closed stream is what some cases are about; files, so that nobody waits for a reader.
    with open(box.dir + b"/stdout", "wb") as o, open(box.dir + b"/stderr", "wb") as e:
        child = subprocess.Popen(command_line(case, box, program, launcher), stdout=o, stderr=e, stdin=subprocess.DEVNULL, env=env,
                                 cwd=box.dir, start_new_session=True)
        reached = act(case, box, mark, {"io": 2.5, "imb": 2, "comm": 3}[case.bench], program) if case.during else None
        hung = False
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            hung, code = True, None
    wait = time.time()
    left = processes(mark)
    while left and not hung and time.time() - wait < 5:  # helpers of a launcher end a little later
        time.sleep(.1)
        left = processes(mark)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if hung:
        child.wait()
    if case.shim or case.fuse:
        reached = bool(os.listdir(box.log))
    elif reached is None:
        reached = True
    trouble = judge(case, box, code, hung, left, reached, program, env)
    if liar:
        subprocess.run(["umount", "-l", box.mount], stderr=subprocess.DEVNULL)
        liar.kill()
        liar.wait()
    if not trouble:
        shutil.rmtree(box.dir, ignore_errors=True)
    for name in os.listdir("/dev/shm"):
        os.path.isdir(f"/dev/shm/{name}") and shutil.rmtree(f"/dev/shm/{name}", ignore_errors=True) or (os.path.isfile(f"/dev/shm/{name}") and os.unlink(f"/dev/shm/{name}"))
    return reached, trouble


def judge(case, box, code, hung, left, reached, program, env):
    """What is wrong, or nothing."""
    read = lambda name: open(name, "rb").read() if os.path.exists(name) else b""
    raw = read(box.dir + b"/stdout") + read(box.dir + b"/stderr")
    text = raw.decode("utf-8", "replace")
    if hung:
        return "hang"
    if PANIC.search(text):
        return "panic: " + PANIC.search(text).group(0)
    if left:
        return f"{len(left)} processes left"
    touched = box.touched()
    if touched:
        return f"foreign file touched: {os.path.basename(touched)!r}"
    if code not in case.exits:
        return f"exit {code}"
    document = read(box.prefix + b".json")
    try:
        outcome = json.loads(document)["ending"]["outcome"] if document else None
    except (ValueError, KeyError, TypeError):
        outcome = "unreadable" if code == 0 else None
    if code == 0 and outcome not in ("complete", None) and not case.launchers_code:
        return f"exit 0, outcome {outcome}"
    healed = b"healed" in read(box.log + b"/liar")
    if reached and case.damage and code not in (1, 3) and not healed:
        return f"damage not found: exit {code}"
    if reached and case.must_fail and code == 0:
        return "error lost: exit 0"
    # An error that the library itself lost is seen in the data.
    if reached and case.says and code != 3 and not re.search(case.says, text + document.decode("utf-8", "replace")):
        return f"the message does not say {case.says.split('|')[0]}"
    if code not in (0, None) and not case.streams and not case.silent and not raw.strip():
        return f"exit {code} without a word"
    bad = RAW.search(raw)
    if bad:
        return f"raw control character {bad.group(0)!r} in the output"
    kept = box.run_dir()
    if kept and not case.keeps:
        return "run directory left"
    journal = box.prefix + b".jsonl"
    if os.path.exists(journal) and os.path.getsize(journal):
        plain = {k: v for k, v in env.items() if k not in ("LD_PRELOAD", "BEFF_SHIM")}
        again = subprocess.run([program, "report", b"./" + os.path.basename(journal)], capture_output=True, env=plain,
                               cwd=os.path.dirname(journal), timeout=30)
        if again.returncode != 0:
            return f"the journal cannot be reported: exit {again.returncode}"
    shm = os.listdir("/dev/shm")
    if [n for n in shm if "beff" in n]:
        return f"shared memory left: {shm}"
    return None


def campaign(args, mpi, work):
    env = environment(mpi)
    program = args.program.get(mpi) or f"{env['CARGO_TARGET_DIR']}/release/beff-raw"
    if not os.path.exists(program):
        sys.exit(f"{program} is not there: eval \"$(scripts/env.sh {mpi})\" && cargo build --release")
    launcher = env["BEFF_MPIRUN"].split()
    rows, troubles = collections.defaultdict(lambda: [0, 0, 0, 0]), []
    number = 0
    for group in args.groups:
        if group == "mutated":
            for bench, tried, bad in mutate.run(program, env, work, args.mutations, args.seed, launcher, args.pause):
                rows[group, bench] = [tried, tried - len(bad), len(bad), 0]
                troubles += [(group, name, why) for name, why in bad]
            continue
        for case in table.cases(group, args.count, args.seed):
            if args.only and not re.search(args.only, case.name):
                continue
            mutate.pause(args.pause)
            number += 1
            reached, trouble = run(case, f"{mpi}-{number}", work, program, launcher, env, args.limit)
            row = rows[group, case.bench]
            row[0] += 1
            row[3] += not reached
            row[2 if trouble else 1] += 1
            if trouble:
                troubles.append((group, case.name, trouble))
                print(f"FAILED {mpi} {group} {number}: {case.name}: {trouble}", file=sys.stderr, flush=True)
        # A campaign that does nothing finds nothing.
        own = [row for (of, _), row in rows.items() if of == group]
        if own and all(tried == missed for tried, _, _, missed in own):
            troubles.append((group, "all", "no fault was reached"))
    return rows, troubles


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--mpi", default="mpich,openmpi", type=lambda s: s.split(","))
    p.add_argument("--groups", default=[*table.GROUPS, "mutated"], type=lambda s: s.split(","))
    p.add_argument("--count", type=int, help="cases of each group (default: that of the group)")
    p.add_argument("--mutations", type=int, default=20_000)
    p.add_argument("--seed", default="20000829")
    p.add_argument("--only", help="expression that the name of a case must match")
    p.add_argument("--limit", type=float, default=90, help="seconds a case may take")
    p.add_argument("--program", default={}, type=lambda s: dict(w.split("=", 1) for w in s.split(",")), help="mpich=FILE,openmpi=FILE")
    p.add_argument("--dir", default="/var/tmp", help="where the cases have their files")
    p.add_argument("--pause", help="nothing is begun while this file exists: somebody measures")
    args = p.parse_args()
    alone()
    work = tempfile.mkdtemp(prefix="beff-hostile.", dir=args.dir)
    built(work)
    failed, begin = 0, time.time()
    print("| MPI | group | benchmark | tried | passed | failed | fault not reached |\n|---|---|---|---|---|---|---|")
    lists = []
    for mpi in args.mpi:
        rows, troubles = campaign(args, mpi, work)
        for (group, bench), (tried, passed, bad, missed) in rows.items():
            print(f"| {mpi} | {group} | {bench} | {tried} | {passed} | {bad} | {missed} |", flush=True)
        lists += [(mpi, *t) for t in troubles]
    if lists:
        print("\n| MPI | group | case | reason |\n|---|---|---|---|")
        for row in lists:
            print("| " + " | ".join(str(w).replace("|", "\\|") for w in row) + " |")
    print(f"\n{time.time() - begin:.0f} s, seed {args.seed}; {len(lists)} failed" + (f"; their files are in {work}" if lists else ""))
    if not lists:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if lists else 0


if __name__ == "__main__":
    sys.exit(main())
