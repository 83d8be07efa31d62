"""Prints how far replayed bandwidths are from the recorded ones, and recorded ones of several runs from their own median:
fidelity.py TITLE RESULT.json..."""

import json
import statistics
import sys

title, paths = sys.argv[1], sys.argv[2:]
ratios = {}  # class -> one ratio for each result
shares = {}
recorded = {}  # class -> one bandwidth for each result
sound = []
for path in paths:
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    result = result.get("result", result)
    sums = {}
    for record in result["classes"]:
        if record["repetition"] == 0:  # verification: its times do not count
            continue
        total = sums.setdefault(record["class"], [0, 0.0, 0, 0.0])
        for at, side in ((0, "recorded"), (2, "replayed")):
            total[at] += record[side]["bytes"]
            total[at + 1] += record[side]["seconds"]
    all_seconds = sum(total[1] for total in sums.values())
    for name, (then_bytes, then, now_bytes, now) in sums.items():
        if min(then_bytes, then, now_bytes, now) > 0:
            ratios.setdefault(name, []).append((now_bytes / now) / (then_bytes / then))
            recorded.setdefault(name, []).append(then_bytes / then)
            shares.setdefault(name, []).append(then / all_seconds)
    for record in result["repetitions"]:
        sound.append((record["calls_as_recorded"], record["calls"], record["bytes_wrong"]))

print(f"== {title}: {len(paths)} repetitions; calls as recorded, all, wrong bytes: {sound}")
medians, own_medians = [], []
for name, values in ratios.items():
    median = statistics.median(values)
    medians.append(abs(median - 1))
    spread = " ".join(f"{value:.3f}" for value in values)
    own = statistics.median(recorded[name])
    apart = [abs(value / own - 1) for value in recorded[name]]
    own_medians.append(statistics.median(apart))
    print(
        f"   {name:20} {100 * (median - 1):+6.1f} %   ({spread}; {100 * statistics.median(shares[name]):.0f} % of the time; "
        f"recorded runs differ from their median by {100 * statistics.median(apart):.1f} %, at most {100 * max(apart):.0f} %)"
    )
if medians:
    print(
        f"   worst {100 * max(medians):.1f} %, median {100 * statistics.median(medians):.1f} %; "
        f"recorded runs among themselves: worst {100 * max(own_medians):.1f} %, median {100 * statistics.median(own_medians):.1f} %"
    )
