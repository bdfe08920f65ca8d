"""Sides take turns: A, B, C, then B, C, A, and so on."""
import sys
import time


# Monotonic time after which sides have one turn each: a run that the machine
# slows down ends all the same.
deadline = float("inf")


def say(text):
    print(text, file=sys.stderr, flush=True)


class Failed(Exception):
    """A side could not do it; its text goes into the table."""


def take_turns(sides, reps, seconds, least=2):
    """sides: {name: callable}; a callable measures once and returns a dict of
    numbers. Returns {name: [dict, ...]} and {name: why it failed}. After
    `seconds` no new round begins once there have been `least`."""
    names, results, faults = list(sides), {}, {}
    start = time.monotonic()
    for rep in range(reps):
        if rep >= 1 and time.monotonic() > deadline:
            break
        if rep >= least and time.monotonic() - start > seconds:
            break
        turn = names[rep % len(names):] + names[:rep % len(names)]
        for name in turn:
            if name in faults:
                continue
            try:
                results.setdefault(name, []).append(sides[name]())
            except Failed as fault:
                faults[name] = str(fault)
                results.pop(name, None)
    return results, faults


def records(case, group, results, faults, metric, unit, better, **more):
    """One record per side: the line of numbers of a case."""
    from . import stats
    out = []
    for side, runs in results.items():
        values = [metric(r) for r in runs]
        record = {"group": group, "case": case, "side": side, "unit": unit,
                  "better": better, **stats.summary(values), **more}
        cpu = [r["cpu_each"] for r in runs if "cpu_each" in r]
        if cpu:
            record["cpu"] = stats.median(cpu)
            record["cpus"] = cpu
        out.append(record)
    for side, why in faults.items():
        out.append({"group": group, "case": case, "side": side, "unit": unit,
                    "better": better, "fault": why, **more})
    return out
