"""Two result files side by side: what became slower, beyond its spread."""
import json

from .report import table
from .stats import short


def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def key(r):
    return (r.get("group"), r.get("case"), r.get("side"), r.get("unit"))


def change(old, new):
    """How many times better the new one is; None if that has no meaning."""
    if old.get("better") not in ("more", "less") or not old.get("median") \
            or not new.get("median"):
        return None
    times = new["median"] / old["median"]
    return times if old["better"] == "more" else 1 / times


def noise(old, new):
    """What two runs may differ by: their spreads, and at least a tenth."""
    return 1 + max(0.1, (old.get("spread") or 0.1) + (new.get("spread") or
                                                      0.1))


def verdict(times, limit):
    if times < 1 / limit:
        return "WORSE"
    return "better" if times > limit else ""


def compare(old, new, only=None):
    """Rows (case, side, old, new, times better, verdict), and the number of
    cases that became worse."""
    before = {key(r): r for r in old if "median" in r}
    rows, worse = [], 0
    for r in new:
        if "median" not in r or key(r) not in before:
            continue
        if only and not r["side"].startswith(only):
            continue
        was = before[key(r)]
        times = change(was, r)
        if times is None:
            continue
        word = verdict(times, noise(was, r))
        worse += word == "WORSE"
        rows.append([f"{r['group']}: {r['case']}", r["side"],
                     short(was["median"]), short(r["median"]), r["unit"],
                     f"{times:.2f}", word])
    return rows, worse


def show(old_path, new_path):
    rows, worse = compare(load(old_path), load(new_path))
    print(table(["case", "side", "old", "new", "unit", "times better", ""],
                rows))
    print(f"{len(rows)} figures compared, {worse} worse beyond their spread.")
    return worse
