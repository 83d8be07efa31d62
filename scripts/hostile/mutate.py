"""Mutated inputs: journals, documents, .sum, hints, sizes and profiles, given to the program as files."""
import concurrent.futures, os, random, re, subprocess, time

WORDS = [b"9223372036854775807", b"-1", b"0", b"18446744073709551616", b"1e308", b"-1e308", b"1e-320", b"null", b"[]", b"{}", b'""', b"true",
         b"\x1b[2J", b"\\u0000", b"\\u001b[31m", b"\xff\xfe", b"\x00", b"\n", b",", b":", b"}", b"]", b"all ", b"Lmax ", b"on_open ", b"\xe2\x80\xae"]
PANIC = re.compile(rb"panicked at|stack overflow|memory allocation of")
RAW = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
MEMORY, SECONDS = 2 << 30, 10
HINTS = b"# hints\nall all all all romio_cb_write enable\n2 write scatter 1024 cb_buffer_size 16777216\nall read separated on_open striping_unit 65536\n"


def damaged(text, rng):
    text = bytearray(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        if not text:
            break
        at = rng.randrange(len(text))
        to = min(len(text), at + rng.randrange(60))
        how = rng.randrange(9)
        if how == 0:
            del text[at:]
        elif how == 1:
            del text[at:to]
        elif how == 2:
            text[at:at] = text[at:to] * rng.choice([1, 2, 1000])
        elif how == 3:
            text[at] ^= 1 << rng.randrange(8)
        elif how == 4:
            lines = bytes(text).splitlines(keepends=True)
            rng.shuffle(lines[1:])
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            text = bytearray(b"".join(lines))
        elif how in (5, 6):
            number = re.compile(rb"-?\d+(\.\d+)?").search(text, at)
            if number:
                text[number.start():number.end()] = rng.choice(WORDS[:7] + [str(rng.getrandbits(rng.randrange(1, 66))).encode()])
        elif how == 7:
            text[at:at] = rng.choice(WORDS)
        else:
            text[at:at] = rng.choice([b"[", b'{"a":', b"x", b" ", b"0"]) * rng.choice([1, 100, 20_000])
    return bytes(text)


def pause(while_exists):
    while while_exists and os.path.exists(while_exists):
        time.sleep(2)


def originals(program, env, work, launcher):
    """Sound files, made by short runs: (benchmark, name, words before the file, text)."""
    made = []
    d = f"{work}/sound"
    os.makedirs(d, exist_ok=True)
    runs = {"io": ["-T", "1s", "--memory-per-process", "64M", "--space", "80M", "--types", "2,3", "--path", d],
            "imb": ["imb", "--msglog", "4:6", "--iter", "2", "P_Write_Indv", "S_Read_Expl", "--path", d],
            "comm": ["comm", "--quick", "-T", "1s", "--families", "ping-pong,ring", "--memory-per-process", "1M"]}
    for bench, words in runs.items():
        subprocess.run([*launcher, "-n", "2", program, *words, "--quiet", "--out", f"{d}/{bench}"], env=env, check=True, capture_output=True)
        for end in ("json", "jsonl", "sum"):
            name = f"{d}/{bench}.{end}"
            if os.path.exists(name):
                views = [["report"], ["report", "--details"], ["report", "--format", "csv"], ["report", "--format", "json"]]
                views += {"io": [["report", "--format", "sum"]], "imb": [["report", "--format", "imb"]]}.get(bench, [])
                made.append((bench, end if end != "sum" else "json", views, open(name, "rb").read()))
    nowhere = f"{work}/nowhere"
    made.append(("io", "hints", [["--path", nowhere, "--hints"]], HINTS))
    made.append(("imb", "msglen", [["imb", "S_Write_Indv", "--path", nowhere, "--msglen"]], b"0 1 2, 4\n1K 64K\n1M\n"))
    made.append(("imb", "input", [["imb", "--path", nowhere, "--input"]], b"# names\nS_Write_Indv\nP_Read_Expl\n"))
    profile = open(os.path.join(os.path.dirname(__file__), "../../trace/workloads/strided.csv"), "rb").read()
    made.append(("replay", "csv", [["profile", "show"], ["replay", "--plan"]], profile))
    return made


BOUNDED = ["prlimit", f"--as={MEMORY}", f"--cpu={SECONDS + 5}:{SECONDS + 6}"]


def trouble(program, env, words, name):
    begin = time.time()
    try:
        done = subprocess.run([*BOUNDED, program, *words, name], env=env, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"longer than {SECONDS} s"
    said = done.stdout + done.stderr
    if PANIC.search(said):
        return "panic: " + said[PANIC.search(said).start():][:160].decode("utf-8", "replace").replace("\n", " ")
    if done.returncode not in (0, 1, 2, 3):
        return f"exit {done.returncode} after {time.time() - begin:.1f} s"
    if done.returncode and os.path.basename(name).encode() not in said and b"nowhere" not in said and b"line" not in said:
        return "the message does not name the file: " + said[:120].decode("utf-8", "replace").replace("\n", " ")
    if RAW.search(said):
        return f"raw control character {RAW.search(said).group(0)!r}"
    return None


def run(program, env, work, count, seed, launcher, while_exists=None):
    """For each benchmark: tried, and (name, reason) of those that failed."""
    rng = random.Random(f"{seed} mutated")
    sound = originals(program, env, work, launcher)
    tried, bad = {}, {}

    def one(bench, words, name, text):
        with open(name, "wb") as f:
            f.write(text)
        why = trouble(program, env, words, name)
        if not why:
            os.unlink(name)
        return bench, f"{' '.join(words)} {os.path.basename(name)}", why

    # Drawn in order, so that the same seed gives the same inputs; tried side by side.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for first in range(0, count, 50):
            pause(while_exists)
            batch = []
            for i in range(first, min(count, first + 50)):
                bench, end, views, text = rng.choice(sound)
                text = damaged(text, rng)
                batch.append(pool.submit(one, bench, rng.choice(views), f"{work}/mutated-{i}.{end}", text))
            for done in batch:
                bench, name, why = done.result()
                tried[bench] = tried.get(bench, 0) + 1
                bad.setdefault(bench, []).extend([(name, why)] if why else [])
    return [(bench, tried[bench], bad[bench]) for bench in sorted(tried)]
