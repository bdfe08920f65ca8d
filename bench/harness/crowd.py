"""Writers updating random boxes of one array, each update its own version;
and a reader beside them."""
import os
import shutil
import subprocess
import time

from . import stats
from .turns import Failed, say

# side -> (player, does an update sync?)
SIDES = {"Pyramid, os": ("Pyramid", 0), "Pyramid, commit": ("Pyramid", 1),
         "TileDB": ("TileDB", 1), "Icechunk": ("Icechunk", 0)}
EDGE, BOX = 2048, (64, 64)
# of a full run; TileDB's rate with 8 writers, which there is a target for, moves
# by a tenth from one turn to the next
TURNS = {1: 3, 2: 3, 4: 3, 8: 9}


class Crowd:
    """So many processes of one kind; all share a folder."""

    def __init__(self, ctx, cast, kind):
        self.ctx, self.cast, self.kind = ctx, cast, kind
        self.home = os.path.join(ctx.folder, "crowd-" + kind)
        self.players = []

    def grow(self, n):
        while len(self.players) < n:
            self.players.append(self.cast.start(self.kind, self.home))

    def end(self):
        for player in self.players:
            player.end()
        shutil.rmtree(self.home, ignore_errors=True)


def contest(crowd, array, writers, reader, seconds, words):
    """Returns answers of the writers, of the reader (or None), versions."""
    crowd.grow(writers + 1)
    crew, watcher = crowd.players[:writers], crowd.players[writers]
    watcher.ask("make", array=array, **words)
    for player in crew:
        player.tell("join", array=array, **words)
    for player in crew:
        player.hear()
    os.sync()
    for i, player in enumerate(crew):
        player.tell("update", array=array, size=BOX, seconds=seconds,
                    seed=1000 + i, verify=0)
    if reader:
        watcher.tell("watch", array=array, size=(100, 100), seed=9,
                     seconds=seconds)
    seen = watcher.hear() if reader else None
    wrote = [player.hear() for player in crew]
    count = watcher.ask("versions", array=array)["n"] - 1
    for player in crew + [watcher]:
        player.ask("drop", array=array)
    shutil.rmtree(os.path.join(crowd.home, array), ignore_errors=True)
    return wrote, seen, count


def note(side, writers, wrote, count, sync):
    """Commits per second of one repetition."""
    n = sum(w["n"] for w in wrote)
    wall = max(w["wall"] for w in wrote)
    return {"rate": n / wall, "conflicts": sum(w["conflicts"] for w in wrote),
            "n": n, "lost": n - count, "cpu": sum(w["cpu"] for w in wrote),
            "worst": max(w["worst"] for w in wrote)}


def record(side, writers, runs, sync):
    return {"group": "crowd", "case": f"W={writers}", "side": side,
            "writers": writers, "unit": "commits/s", "better": "more",
            **stats.summary([r["rate"] for r in runs]),
            "conflicts": sum(r["conflicts"] for r in runs),
            "commits": sum(r["n"] for r in runs),
            "lost": sum(r["lost"] for r in runs),
            "worst_ms": max(r["worst"] for r in runs) * 1e3,
            "cpu": stats.median([r["cpu"] * 1e6 / max(r["n"], 1)
                                 for r in runs]), "cpu_unit": "us",
            "durability": "commit" if sync else "os"}


def readers(side, writers, seen, sync):
    return {"group": "readers", "case": f"beside {writers} writers",
            "side": side, "writers": writers, "unit": "us", "better": "less",
            **stats.summary([s["p50"] * 1e6 for s in seen]),
            "p99": stats.median([s["p99"] for s in seen]) * 1e6,
            "worst": max(s["worst"] for s in seen) * 1e6,
            "durability": "commit" if sync else "os"}


def one_size(ctx, crowds, file, writers, seconds, out):
    runs = {side: [] for side in SIDES}
    seen = {side: [] for side in SIDES}
    for rep in range(ctx.pick(TURNS.get(writers, 2), 2, 1)):
        for side, (kind, sync) in SIDES.items():
            if kind not in crowds or runs[side] is None:
                continue
            words = {"shape": (EDGE, EDGE), "chunk": (256, 256), "type": "f64",
                     "file": file, "sync": sync}
            name = f"w{writers}r{rep}s{sync}"
            try:
                wrote, _, count = contest(crowds[kind], name, writers, False,
                                          seconds, words)
                runs[side].append(note(side, writers, wrote, count, sync))
                if writers in (1, 8, 32) and rep < 2:
                    _, saw, _ = contest(crowds[kind], name + "x", writers,
                                        True, seconds, words)
                    seen[side].append(saw)
            except Failed as fault:
                say(f"  {side}: {fault}")
                out.append({"group": "crowd", "case": f"W={writers}",
                            "side": side, "unit": "commits/s",
                            "better": "more", "fault": str(fault)})
                runs[side] = None
                crowds.pop(kind)
    for side, (_, sync) in SIDES.items():
        if runs[side]:
            out.append(record(side, writers, runs[side], sync))
        if runs[side] and seen[side]:
            out.append(readers(side, writers, seen[side], sync))


def run(ctx, cast):
    file = os.path.join(ctx.folder, "crowd.cells")
    subprocess.run([os.path.join(ctx.build, "bench", "bench-cells"), file,
                    "f64", str(EDGE * EDGE), "random"], check=True)
    crowds = {kind: Crowd(ctx, cast, kind)
              for kind in {k for k, _ in SIDES.values()}
              if kind in cast.commands}
    out = [{"group": "crowd", "case": "W=1", "side": side, "unit": "commits/s",
            "better": "more", "fault": cast.absent[kind]}
           for side, (kind, _) in SIDES.items() if kind in cast.absent]
    try:
        for writers in ctx.pick([1, 2, 4, 8, 16, 32], [1, 4, 8], [2]):
            say(f"{writers} writers")
            start = time.monotonic()
            one_size(ctx, crowds, file, writers, ctx.pick(1.5, 1, 0.3), out)
            say(f"  {time.monotonic() - start:.0f} s")
    finally:
        for crowd in crowds.values():
            crowd.end()
    return out
