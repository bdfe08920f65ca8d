"""2-D dicing, weak and strong scaling, as in the papers (bench/dice.h)."""
import json
import os
import subprocess
import time

from . import machine
from .players import plain
from .turns import Failed, records, say, take_turns

# side -> (program, name of the side there, what it is)
SIDES = {
    "raw": ("dicing", "raw", "a file per process, calls of 1 MiB"),
    "floor": ("dicing", "floor", "a file per process, gathered chunks"),
    "flat": ("dicing", "flat", "one flat file, a call per row"),
    "Pyramid": ("dicing", "pyramid", "one store"),
    "MPI-IO ind": ("mpich", "ind", "MPICH, independent"),
    "MPI-IO nosieve": ("mpich", "nosieve",
                       "MPICH, independent, no data sieving"),
    "MPI-IO coll": ("mpich", "coll", "MPICH, collective"),
    "MPI-IO ompi": ("openmpi", "ind", "Open MPI, independent"),
    "HDF5 chunks": ("mpich", "h5-chunks", "parallel HDF5, chunk by chunk"),
    "HDF5 whole": ("mpich", "h5-whole", "parallel HDF5, whole subdomain"),
    "HDF5 coll": ("mpich", "h5-coll", "parallel HDF5, collective"),
    "PnetCDF ind": ("openmpi", "nc-ind", "PnetCDF, independent"),
    "PnetCDF coll": ("openmpi", "nc-coll", "PnetCDF, collective"),
}
FEW = ["raw", "floor", "Pyramid", "MPI-IO nosieve", "MPI-IO coll",
       "HDF5 chunks", "PnetCDF ind"]
MPIEXEC = {"mpich": "mpiexec.mpich", "openmpi": "mpiexec.openmpi"}
# A side whose round took so many seconds, and four times as long as the
# fastest, is not asked for larger P.
PATIENCE = 20
LIMIT = 100    # seconds; a round that takes longer is given up
PHASES = ["write", "read", "again"]


def environment(folder):
    return dict(os.environ, BENCH_DIR=folder, OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1",
                OMPI_MCA_btl_vader_single_copy_mechanism="none")


def play_round(ctx, side, grid, chunks, sync):
    """One round of one side: {phase: (bytes, wall, cpu)}."""
    program, name, _ = SIDES[side]
    path = os.path.join(ctx.build, "bench", "bench-" + program)
    command = [path, name, *map(str, grid + chunks),
               "commit" if sync else "os"]
    if program in MPIEXEC:
        command = [MPIEXEC[program], "-n", str(grid[0] * grid[1])] + command
    try:
        out = subprocess.run(command, capture_output=True, text=True,
                             timeout=LIMIT, env=environment(ctx.folder))
    except subprocess.TimeoutExpired:
        raise Failed(f"took over {LIMIT} s") from None
    except OSError as error:
        raise Failed(plain(str(error))) from None
    phases = {}
    for line in out.stdout.splitlines():
        if line.startswith("{"):
            r = json.loads(line)
            phases[r["phase"]] = r
    if out.returncode or "write" not in phases:
        said = [s for s in out.stderr.splitlines() if s.strip(" -=*")]
        own = [s[7:] for s in said if s.startswith("bench: ")]  # not mpiexec
        raise Failed(plain((own or said or ["failed"])[-1]))
    return phases


def case(ctx, group, grid, chunks, sync, names, reps, seconds, slow):
    """All sides at one P; records of each phase."""
    p = grid[0] * grid[1]
    total = p * chunks[0] * chunks[1] << 20
    if machine.available() < 3.2 * total:
        say(f"  P={p}: not enough memory for {total >> 20} MiB, left out")
        return []
    sides, faults = {}, {}
    for name in names:
        program = SIDES[name][0]
        if not os.path.exists(os.path.join(ctx.build, "bench",
                                           "bench-" + program)):
            faults[name] = "not built: its library is not installed"
        elif name in slow:
            faults[name] = slow[name]
        else:
            sides[name] = lambda n=name: timed_round(ctx, n, grid, chunks,
                                                     sync)
    results, more = take_turns(sides, reps, seconds)
    slow.update(too_slow(results, p))
    faults.update(more)
    slow.update({n: f"left out: {why} at P={p}" for n, why in more.items()
                 if why.startswith("took over")})
    out = []
    for phase in PHASES if not sync else ["write"]:
        runs = {s: [dict(r[phase], cpu_each=r[phase]["cpu"] * 1e9 /
                         r[phase]["bytes"]) for r in rounds]
                for s, rounds in results.items()}
        out += records(f"{phase} P={p}", group, runs, faults,
                       lambda r: r["bytes"] / r["wall"] / 1e6, "MB/s", "more",
                       p=p, phase=phase, mib=total >> 20, cpu_unit="ms/MB",
                       durability="commit" if sync else "os",
                       cache="page cache" if total < ctx.dirty_limit
                       else "page cache; more than may be dirty at once")
    return out


def timed_round(ctx, name, grid, chunks, sync):
    start = time.monotonic()
    phases = play_round(ctx, name, grid, chunks, sync)
    phases["took"] = time.monotonic() - start
    return phases


def too_slow(results, p):
    """{side: why it is left out from now on}"""
    took = {name: min(r["took"] for r in rounds)
            for name, rounds in results.items()}
    limit = max(PATIENCE, 4 * min(took.values(), default=0))
    return {name: f"left out: a round took {t:.0f} s at P={p}"
            for name, t in took.items() if t > limit}


def square(p):
    side = int(round(p ** 0.5))
    return [side, side]


GRIDS = {1: [1, 1], 2: [1, 2], 4: [2, 2], 8: [2, 4], 16: [4, 4]}


def run(ctx):
    """weak: 256 MiB each; strong: 2 GiB in all; weak with commit."""
    edge = ctx.pick(16, 8, 1)
    out, slow = [], {}
    for p in ctx.pick([1, 2, 4, 9, 16], [1, 2, 4], [1, 4]):
        grid = [1, 2] if p == 2 else square(p)
        say(f"weak scaling, P={p}")
        out += case(ctx, "weak", grid, [edge, edge], False,
                    list(SIDES) if p <= 4 else FEW,
                    ctx.pick(5 if p <= 4 else 3, 3, 1),
                    ctx.pick(35, 20, 1), slow)
    for p in ctx.pick([1, 4], [4], []):
        say(f"weak scaling, synced, P={p}")
        out += case(ctx, "weak, commit", square(p), [edge, edge], True, FEW,
                    3, ctx.pick(25, 12, 1), slow)
    slow = {}
    tall, wide = ctx.pick((32, 64), (16, 32), (4, 4))
    for p in ctx.pick([1, 2, 4, 8, 16], [1, 2, 4], [4]):
        say(f"strong scaling, P={p}")
        rows, cols = GRIDS[p]
        out += case(ctx, "strong", [rows, cols], [tall // rows, wide // cols],
                    False, FEW, ctx.pick(3, 2, 1), ctx.pick(20, 15, 1), slow)
    return out
