"""What users do all day, beside what else they could take."""
import os
import subprocess

from . import machine, stats
from .turns import Failed, records, say, take_turns

NO_SYNC = {"Icechunk": "does not sync on a file system"}
ALWAYS = {"TileDB": "always syncs", "TileDB, one thread": "always syncs"}


class Daily:
    def __init__(self, ctx, cast):
        self.ctx, self.cast = ctx, cast
        self.players, self.out = {}, []
        self.faults = dict(cast.absent)
        for side in cast.commands:
            self.players[side] = cast.start(
                side, os.path.join(ctx.folder, "daily", folder_name(side)))

    def end(self):
        for player in self.players.values():
            player.end()

    def cells(self, name, kind, count, how):
        path = os.path.join(self.ctx.folder, name)
        subprocess.run([os.path.join(self.ctx.build, "bench", "bench-cells"),
                        path, kind, str(count), how], check=True)
        return path

    def make(self, array, shape, chunk, kind, how="random", only=None,
             **more):
        """Everyone makes and fills it; the players who could. The time it
        took is a record, too."""
        count = 1
        for e in shape:
            count *= e
        path = self.cells(array + ".cells", kind, max(count, 1 << 20), how)
        able, took = [], {}
        for side, player in self.players.items():
            if only and side not in only:
                continue
            try:
                took[side] = [player.ask("make", array=array, shape=shape,
                                         chunk=chunk, type=kind, file=path,
                                         **more)]
                able.append(side)
            except Failed as fault:
                self.faults[side] = str(fault)
        os.sync()
        return able, took

    def close(self, array, able):
        for side in able:
            try:
                self.players[side].ask("drop", array=array)
            except Failed:
                pass

    def drop(self, array, able):
        self.close(array, able)
        self.remove(array, able)

    def remove(self, array, able):
        for side in able:
            path = os.path.join(self.players[side].home, array)
            subprocess.run(["rm", "-rf", path], check=False)
        os.unlink(os.path.join(self.ctx.folder, array + ".cells"))

    def measure(self, case, able, verb, seconds=0.12, most=4000, least=1,
                reps=None, durability="os", unit="us", group="daily", **words):
        """Everyone in turns; each as often as it can in that time."""
        sides, faults, values = {}, {}, {}
        for side in able:
            try:
                first = self.players[side].ask(verb, count=least, **words)
                if "value" in first:
                    values[side] = first["value"]
                each = max(first["wall"] / max(first["n"], 1), 1e-7)
                count = int(min(max(seconds / each, least), most))
                self.players[side].ask(verb, count=count, **words)  # warms
                sides[side] = lambda s=side, n=count: self.one(s, verb, n,
                                                               words)
            except Failed as fault:
                faults[side] = str(fault)
        results, more = take_turns(sides, reps or self.ctx.pick(5, 3, 1),
                                   self.ctx.pick(14, 8, 1))
        faults.update(more)
        faults.update(self.cast.absent)
        agree(case, values)
        held = [machine.resident(self.players[s].home) for s in able]
        self.out += records(case, group, results, faults,
                            lambda r: r["wall"] * 1e6 / r["n"], unit, "less",
                            durability=durability, cpu_unit="us",
                            cache=f"page cache holds "
                                  f"{100 * min(held, default=0):.0f} % or "
                                  f"more of each side's files")
        return results

    def one(self, side, verb, count, words):
        reply = self.players[side].ask(verb, count=count, **words)
        reply["cpu_each"] = reply["cpu"] * 1e6 / reply["n"]
        return reply

    def check(self, array, able, size):
        """Cell by cell against what was written; a side that fails is out."""
        good = []
        for side in able:
            try:
                self.players[side].ask("check", array=array, size=size)
                good.append(side)
            except Failed as fault:
                say(f"  {side}: {fault}")
                self.faults[side] = str(fault)
        return good


def agree(case, values):
    """All sides found the same mean."""
    want = stats.median(list(values.values())) if values else 0
    for side, value in values.items():
        if abs(value - want) > 1e-9 * abs(want):
            raise SystemExit(f"{case}: {side} says {value}, others {want}")


def folder_name(side):
    return "".join(c if c.isalnum() else "-" for c in side)


# --- the cases -------------------------------------------------------------

def small_reads(day):
    n = day.ctx.pick(8192, 4096, 512)
    say("small reads of a square")
    able, _ = day.make("square", (n, n), (256, 256), "f64")
    able = day.check("square", able, (100, 100))
    day.measure("box 100 x 100", able, "read", array="square",
                size=(100, 100), seed=7)
    day.measure("row 1 x N", able, "read", array="square", size=(1, n), seed=7)
    day.measure("column N x 1", able, "read", array="square", size=(n, 1),
                seed=7, seconds=0.2)
    side = min(1000, n // 2)
    day.measure(f"mean of a box, {side} x {side}", able, "mean",
                array="square", size=(side, side), seed=7)
    day.measure("mean of all", able, "mean", array="square", size=(n, n),
                seed=7, reps=day.ctx.pick(3, 2, 1))
    day.drop("square", able)


def planes(day):
    n = day.ctx.pick(512, 256, 64)
    say("planes and series of a cube")
    able, _ = day.make("cube", (n, n, n), (32, 32, 32), "f32")
    able = day.check("cube", able, (n, 1, 8))
    for name, size in (("plane 1 x N x N", (1, n, n)),
                       ("plane N x 1 x N", (n, 1, n)),
                       ("plane N x N x 1", (n, n, 1)),
                       ("series N x 1 x 1", (n, 1, 1))):
        day.measure(name, able, "read", array="cube", size=size, seed=7,
                    seconds=0.2)
    day.drop("cube", able)


def updates(day):
    n = day.ctx.pick(4096, 2048, 512)
    for sync in (0, 1):
        name = "commit" if sync else "os"
        say(f"updates and appends, durability {name}")
        able, _ = day.make("update", (n, n), (256, 256), "f64", sync=sync)
        now = [s for s in able if s not in (NO_SYNC if sync else ALWAYS)]
        day.measure(f"update 64 x 64, {name}", now, "update", array="update",
                    size=(64, 64), seed=3, most=1000, durability=name,
                    least=2)
        day.drop("update", able)
        frame = (day.ctx.pick(512, 512, 128),) * 2
        able, _ = day.make("append", (8,) + frame, (8, 128, 128), "f32",
                           sync=sync)
        now = [s for s in able if s not in (NO_SYNC if sync else ALWAYS)]
        day.measure(f"append of a frame, {name}", now, "append",
                    array="append", most=100, durability=name, least=2)
        day.drop("append", able)


VERSIONED = ["Pyramid", "TileDB", "Icechunk"]


def snapshots(day):
    """1 % in one box, and in ten small ones, which is harder."""
    for boxes, name in ((1, "one box"), (10, "ten boxes")):
        say(f"snapshots that each change 1 %, {name}")
        history(day, boxes, name)
    say("looking back at them")
    history(day, boxes, name, look=True)


def history(day, boxes, name, look=False):
    """What all of it takes on disk; or, with look, what reading it takes, and
    what Pyramid has on disk then, which folds what is read often."""
    n = day.ctx.pick(2048, 2048, 512)
    versions = day.ctx.pick(100, 40, 5)
    edge = int((n * n / 100 / boxes) ** 0.5)
    able, _ = day.make("history", (n, n), (256, 256), "f64",
                       only=VERSIONED + ([] if look else ["HDF5"]))
    took, base = {}, {}
    for side in able:
        os.sync()
        base[side] = machine.disk_bytes(os.path.join(day.players[side].home,
                                                     "history"))
        try:
            took[side] = day.players[side].ask(
                "change", array="history", size=(edge, edge), boxes=boxes,
                versions=versions, seed=5)
        except Failed:
            pass
    if look:
        look_back(day, list(took), versions)
    day.close("history", able)
    os.sync()
    ideal = n * n * 8 + versions * boxes * edge * edge * 8
    storage(day, [s for s in able if not look or s == "Pyramid"], took, base,
            ideal, versions, name, look)
    day.remove("history", able)


def look_back(day, able, versions):
    for case, snapshot in (("first", 1), ("middle", versions // 2),
                           ("newest", versions + 1)):
        day.measure(f"box 100 x 100, snapshot {case}", able, "read",
                    array="history", size=(100, 100), seed=7,
                    snapshot=snapshot, group="history")
    day.measure("diff of neighbours", able, "diff", array="history",
                a=versions // 2, b=versions // 2 + 1, group="history")
    day.measure("diff of first and newest", able, "diff", array="history",
                a=1, b=versions + 1, group="history")


def storage(day, able, took, base, ideal, versions, name, read):
    """What they all take on disk, now that the stores are closed."""
    for side in able:
        path = os.path.join(day.players[side].home, "history")
        stored = machine.disk_bytes(path)
        if side not in took:  # keeps none: a copy each
            stored = base[side] * (versions + 1)
        note = ("once the newest was read often" if read else
                "" if side in took else "a copy for each")
        day.out.append({"group": "storage",
                        "side": side + (", read" if read else ""),
                        "case": f"{versions} snapshots that each change 1 %, "
                                f"{name}", "unit": "MB", "better": "less",
                        **stats.summary([stored / 1e6]),
                        "ideal": ideal / 1e6, "note": note})
        if side in took and not read:
            day.out.append({"group": "history", "side": side, "unit": "us",
                            "case": f"to make a snapshot, {name}",
                            "better": "less",
                            **stats.summary([took[side]["wall"] * 1e6 /
                                             versions]),
                            "cpu": took[side]["cpu"] * 1e6 / versions,
                            "cpu_unit": "us", "durability": "os"})


def compressed(day):
    n = day.ctx.pick(4096, 2048, 512)
    say("compressed")
    sides = [s for s in day.players if s != "memmap"]
    able, fills = [], {}
    for rep in range(day.ctx.pick(3, 2, 1)):
        if rep:
            day.drop("pressed", able)
        able, took = day.make("pressed", (n, n), (256, 256), "f64", "smooth",
                              only=sides, pressed=1)
        for side in able:
            fills.setdefault(side, []).extend(
                dict(r, cpu_each=r["cpu"] * 1e6) for r in took[side])
    able = day.check("pressed", able, (100, 100))
    day.out += records("fill, compressed", "compressed",
                       {s: fills[s] for s in able}, {},
                       lambda r: n * n * 8 / r["wall"] / 1e6, "MB/s", "more",
                       durability="os")
    day.measure("box 100 x 100, compressed", able, "read", array="pressed",
                size=(100, 100), seed=7, group="compressed")
    day.close("pressed", able)
    os.sync()
    for side in able:
        path = os.path.join(day.players[side].home, "pressed")
        day.out.append({"group": "compressed", "side": side, "unit": "MB",
                        "case": "stored, compressed", "better": "less",
                        **stats.summary([machine.disk_bytes(path) / 1e6])})
    day.remove("pressed", able)


CASES = {"reads": small_reads, "planes": planes, "updates": updates,
         "snapshots": snapshots, "compressed": compressed}


def run(ctx, cast, names):
    day = Daily(ctx, cast)
    try:
        for name in names:
            CASES[name](day)
    finally:
        day.end()
    return day.out
