"""From records to tables and plots."""
import os

from . import svg
from .stats import ratio, short
from .stats import times as times_of


def table(columns, rows):
    """Markdown; the first column is text, the others are numbers."""
    out = ["| " + " | ".join(columns) + " |",
           "| --- |" + " ---: |" * (len(columns) - 1)]
    out += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(out) + "\n"


def pick(records, group, **more):
    return [r for r in records if r.get("group") == group and
            all(r.get(k) == v for k, v in more.items())]


def in_order(records, key):
    seen = []
    for r in records:
        if r[key] not in seen:
            seen.append(r[key])
    return seen


def find(records, case, side):
    return next((r for r in records if r["case"] == case and
                 r["side"] == side), None)


def cell(r, reference=None, times=True):
    """A median with its spread, and how it compares with Pyramid's."""
    if r is None:
        return ""
    if "fault" in r:
        return "-" if r["fault"] == "-" else "n/a"
    text = short(r["median"])
    if r.get("spread"):
        text += f" ±{100 * r['spread']:.0f}%"
    if times and reference and reference is not r and "values" in r and \
            "values" in reference:
        text += f" ({times_of(factor(r, reference))}x)"
    return text


def factor(r, reference):
    """How many times worse than the reference, by paired repetitions."""
    a, b = r["values"], reference["values"]
    return ratio(a, b) if r["better"] == "less" else ratio(b, a)


def fault_notes(records):
    """Why columns are empty, once each."""
    notes = {}
    for r in records:
        if r.get("fault") not in (None, "-"):
            notes.setdefault((r["side"], r["fault"]), []).append(r["case"])
    return "".join(f"- {side}, {'; '.join(cases[:3])}"
                   f"{', ...' if len(cases) > 3 else ''}: {why}\n"
                   for (side, why), cases in notes.items())


# --- dicing ----------------------------------------------------------------

def dicing(records, group, title, folder, plots):
    mine = pick(records, group)
    if not mine:
        return ""
    sides, out = in_order(mine, "side"), [f"### {title}\n"]
    for phase in in_order(mine, "phase"):
        here = [r for r in mine if r["phase"] == phase]
        for what, show in (("MB/s", cell), ("CPU ms/MB", cpu_cell)):
            rows = []
            for case in in_order(here, "case"):
                reference = find(here, case, "Pyramid")
                rows.append([case] + [show(find(here, case, s), reference)
                                      for s in sides])
            out.append(table([f"{phase}, {what}"] + sides, rows))
        if phase != "again" and len(in_order(here, "case")) > 2:
            name = f"{group}-{phase}.svg"
            series = {s: [(r["p"], r["median"]) for r in here
                          if r["side"] == s and "median" in r]
                      for s in ["Pyramid"] + [x for x in sides
                                              if x != "Pyramid"]}
            plots[name] = svg.lines(
                f"{title}: {phase}", f"durability {here[0]['durability']}; "
                "chunks of 1024 x 1024 bytes", series, "processes", "MB/s",
                log_x=True, log_y=True,
                x_ticks=sorted({r["p"] for r in here}))
            out.append(f"![{title}, {phase}]({folder}/{name})\n")
    out.append(fault_notes([r for r in mine if r["phase"] == "write"]))
    return "\n".join(out)


def cpu_cell(r, _):
    return f"{r['cpu']:.3f}" if r and "cpu" in r else ""


# --- cases of players ------------------------------------------------------

def players(records, group, title, folder, plots, words):
    mine = pick(records, group)
    if not mine:
        return ""
    sides, cases = in_order(mine, "side"), in_order(mine, "case")
    if "Pyramid" in sides:
        sides = ["Pyramid"] + [s for s in sides if s != "Pyramid"]
    out = [f"### {title}\n", words + "\n"]
    rows, cpus, plot = [], [], {}
    for case in cases:
        reference = find(mine, case, "Pyramid")
        unit = next(r["unit"] for r in mine if r["case"] == case)
        rows.append([f"{case}, {unit}"] + [cell(find(mine, case, s), reference)
                                           for s in sides])
        if any("cpu" in r for r in mine if r["case"] == case):
            cpus.append([case] + [cpu_text(find(mine, case, s))
                                  for s in sides])
        if reference and "values" in reference:
            plot[case] = {s: factor(r, reference) for s in sides[1:]
                          if (r := find(mine, case, s)) and "values" in r}
    out.append(table(["wall time"] + sides, rows))
    if cpus:
        out.append(table(["CPU us"] + sides, cpus))
    if any(plot.values()):
        name = f"{group}.svg"
        plots[name] = svg.dots(title, "how many times what Pyramid takes; "
                               "right of the line Pyramid is faster", plot,
                               "times Pyramid")
        out.append(f"![{title}]({folder}/{name})\n")
    out.append(fault_notes(mine))
    return "\n".join(out)


def cpu_text(r):
    return short(r["cpu"]) if r and "cpu" in r else ""


def storage(records, folder, plots):
    out = []
    for case in in_order(pick(records, "storage"), "case"):
        mine = pick(records, "storage", case=case)
        ideal, name = mine[0]["ideal"], f"storage-{len(out)}.svg"
        rows = [[r["side"] + (f" ({r['note']})" if r["note"] else ""),
                 short(r["median"]), f"{r['median'] / ideal:.2f}"]
                for r in mine]
        plots[name] = svg.bars(
            "Storage of " + case, "MB on disk; dashed: one copy and the "
            "changed cells", {r["side"]: r["median"] for r in mine}, "MB",
            ideal, "one copy + changes")
        out.append("### Storage of " + case + "\n\n" +
                   table(["store", "MB on disk",
                          "of one copy + changed cells"], rows) +
                   f"\n![Storage]({folder}/{name})\n")
    return "\n".join(out)


# --- crowds ----------------------------------------------------------------

def crowd(records, folder, plots):
    mine = pick(records, "crowd")
    if not mine:
        return ""
    sides, out = in_order(mine, "side"), []
    out.append("### Writers of one array, each update its own version\n")
    rows = []
    for case in in_order(mine, "case"):
        rows.append([case] + [cell(find(mine, case, s), None, False)
                              for s in sides])
    out.append(table(["commits/s"] + sides, rows))
    more = [[f"{r['side']}, {r['case']}", r["commits"], r["conflicts"],
             r["lost"], short(r["worst_ms"]), short(r["cpu"]),
             r["durability"]] for r in mine if "commits" in r]
    out.append(table(["side", "commits", "conflicts, retried",
                      "acknowledged and lost", "longest ms",
                      "CPU us of a commit", "durability"], more))
    series = {s: [(r["writers"], r["median"]) for r in mine
                  if r["side"] == s and "median" in r] for s in sides}
    plots["crowd.svg"] = svg.lines(
        "Commits per second by writers of one array", "64 x 64 boxes of f64, "
        "each its own version", series, "writers", "commits/s", True, True,
        x_ticks=sorted({r["writers"] for r in mine if "writers" in r}))
    out.append(f"![Commits]({folder}/crowd.svg)\n")
    seen = pick(records, "readers")
    if seen:
        out.append("Latency of a reader of 100 x 100 boxes of the newest "
                   "snapshot beside them:\n")
        out.append(table(
            ["reader, us", "median", "99 %", "longest"],
            [[f"{r['side']}, {r['case']}", short(r["median"]),
              short(r["p99"]), short(r["worst"])] for r in seen]))
    out.append(fault_notes(mine))
    return "\n".join(out)


# --- programs --------------------------------------------------------------

def programs(records, folder, plots):
    out, rows = [], pick(records, "table")
    for title in in_order(rows, "table"):
        mine = [r for r in rows if r["table"] == title]
        out.append(f"### {title}\n")
        lines = [r for r in mine if "row" in r]
        if lines:
            out.append(table(lines[0]["columns"], [r["row"] for r in lines]))
        out += [r["note"] + "\n" for r in mine if "note" in r]
        plot = PLOTS.get(title)
        if plot and lines:
            name, picture = plot(title, lines)
            plots[name] = picture
            out.append(f"![{title}]({folder}/{name})\n")
    return "\n".join(out)


def balance_plot(title, lines):
    """A line per kind of reader, over the number of servers."""
    series = {}
    for r in lines:
        kind, servers = r["row"][0], float(r["row"][1])
        series.setdefault(kind, []).append((servers, float(r["row"][2])))
    return "balance.svg", svg.lines(
        "Load of the busiest server", "requests of the busiest server, of the "
        "mean; 1 is perfect", series, "servers", "busiest / mean", True, True,
        x_ticks=sorted({x for points in series.values() for x, _ in points}),
        strong=("chunks",))


def growth_plot(title, lines):
    columns = lines[0]["columns"]
    series = {}
    for i, column in enumerate(columns[2:], 2):
        if column.startswith("read") or column.endswith("calls"):
            series[column] = [(float(r["row"][0]), float(r["row"][i]))
                              for r in lines]
    return "growth.svg", svg.lines(
        "What one operation asks of the tree", "nodes, and calls for one node "
        "or many at once, as the array grows", series, "cells of the array",
        "requests", True, False,
        strong=("read of a box",))


PLOTS = {"Load of the busiest server": balance_plot,
         "Requests of one operation as the array grows": growth_plot}


# --- all -------------------------------------------------------------------

WORDS = {
    "daily": "Pyramid and HDF5 are called from C, the others from Python as "
             "their users do; in brackets: times what Pyramid takes. Medians "
             "of turns; ± is half of the way from least to most.",
    "history": "After all snapshots were made, ten boxes each. `-`: it cannot "
               "do that.",
    "compressed": "A smooth field; Pyramid Zstandard (Blosc), HDF5 shuffle + "
                  "deflate 1, Zarr, TileDB and Icechunk Zstandard 3, "
                  "tensorstore Blosc with Zstandard 5.",
}


def machine_line(records):
    m = records[0].get("machine", {}) if records else {}
    if not m:
        return ""
    peers = ", ".join(f"{k} {v}" for k, v in
                      records[0].get("peers", {}).items())
    return (f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']} GiB, Linux "
            f"{m['kernel']}, {m['file_system']}, {m['date']} UTC, load at the "
            f"start {m['load_at_start']}. Up to {m['dirty_limit_mib']} MiB "
            f"may be dirty before the disk sets the pace. Peers: {peers}.\n")


def render(records, folder="benchmarks"):
    """Returns (Markdown, {name: SVG})."""
    plots = {}
    parts = [machine_line(records), figures(records)]
    parts.append(dicing(records, "weak", "Weak scaling", folder, plots))
    parts.append(dicing(records, "weak, commit", "Weak scaling, synced",
                        folder, plots))
    parts.append(dicing(records, "strong", "Strong scaling", folder, plots))
    for group, title in (("daily", "What users do all day"),
                         ("history", "Snapshots"),
                         ("compressed", "Compressed")):
        parts.append(players(records, group, title, folder, plots,
                             WORDS[group]))
    parts.append(storage(records, folder, plots))
    parts.append(crowd(records, folder, plots))
    parts.append(programs(records, folder, plots))
    return "\n".join(p for p in parts if p), plots


def write(records, markdown, folder):
    """Put the tables into a file between its marks, and plots beside it."""
    text, plots = render(records, os.path.basename(folder))
    os.makedirs(folder, exist_ok=True)
    for name, picture in plots.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(picture)
    begin, end = "<!-- results: begin -->", "<!-- results: end -->"
    try:
        with open(markdown) as f:
            old = f.read()
        head, rest = old.split(begin, 1)
        tail = rest.split(end, 1)[1]
    except (OSError, ValueError, IndexError):
        head, tail = "# Benchmarks\n\n", "\n"
    with open(markdown, "w") as f:
        f.write(f"{head}{begin}\n\n{text}\n{end}{tail}")


# --- figures to reach ------------------------------------------------------

def best(records, group, case, sides):
    """The side that was best there."""
    there = [r for r in pick(records, group, case=case)
             if r["side"] in sides and "values" in r]
    if not there:
        return None
    key = (max if there[0]["better"] == "more" else min)
    return key(there, key=lambda r: r["median"])


MPI_IO = ["MPI-IO ind", "MPI-IO nosieve", "MPI-IO coll", "MPI-IO ompi"]
P_HDF5 = ["HDF5 chunks", "HDF5 whole", "HDF5 coll"]
PNETCDF = ["PnetCDF ind", "PnetCDF coll"]
S_HDF5 = ["HDF5", "HDF5, large cache"]
ALL_CACHED = "HDF5 that holds all chunks in its cache"
ZARR = ["Zarr", "Zarr + zarrs"]

# group, case, sides, target (Pyramid is so many times better), words
WANTED = [
    ("weak", "write P=2", MPI_IO, None, "P = cores: best MPI-IO"),
    ("weak", "write P=2", P_HDF5, None, "P = cores: best parallel HDF5"),
    ("weak", "write P=4", MPI_IO, 2.2, "best MPI-IO on one flat file"),
    ("weak", "write P=4", P_HDF5, 2.0, "best parallel HDF5"),
    ("weak", "write P=4", PNETCDF, None, "best PnetCDF"),
    ("weak", "read P=2", MPI_IO + P_HDF5 + PNETCDF, None,
     "P = cores: best peer"),
    ("weak", "read P=4", MPI_IO + P_HDF5 + PNETCDF, 1 / 1.1, "best peer"),
    ("daily", "box 100 x 100", S_HDF5[:1], 4, "HDF5"),
    ("daily", "box 100 x 100", S_HDF5[1:], 4, ALL_CACHED),
    ("daily", "box 100 x 100", ZARR, 10, "best Zarr"),
    ("daily", "column N x 1", S_HDF5[:1], 5, "HDF5"),
    ("daily", "column N x 1", S_HDF5[1:], 5, ALL_CACHED),
    ("daily", "plane N x N x 1", S_HDF5[:1], 2, "HDF5"),
    ("daily", "plane N x N x 1", S_HDF5[1:], 2, ALL_CACHED),
    ("daily", "row 1 x N", ["memmap"], None,
     "a flat file, mapped (no win is known)"),
]


def cpu_times(peer, ours):
    """The same by CPU time, which other work on the machine disturbs less."""
    if not peer.get("cpu") or not ours.get("cpu"):
        return ""
    return f"{peer['cpu'] / ours['cpu']:.2f}"


def judged(value, target):
    if target is None:
        return ""
    return "met" if value >= target else "MISSED"


def figures(records):
    """How far the figures to reach are reached in this run."""
    rows = []
    for group, case, sides, target, words in WANTED:
        ours, peer = find(pick(records, group), case, "Pyramid"), best(
            records, group, case, sides)
        if not ours or not peer or "values" not in ours:
            continue
        value = factor(peer, ours)
        rows.append([f"{group}, {case}, against {words}",
                     peer["side"], f"{value:.2f}", cpu_times(peer, ours),
                     f">= {target:.2g}" if target else "",
                     judged(value, target)])
    rows += crowd_figures(records) + storage_figure(records)
    if not rows:
        return ""
    return ("### Figures to reach\n\nHow many times better Pyramid is:\n\n" +
            table(["figure", "the peer's best setting", "times", "times, CPU",
                    "target", ""],
                  rows))


def crowd_figures(records):
    rows, mine = [], pick(records, "crowd")
    for side, ours in (("Icechunk", "Pyramid, os"),
                       ("TileDB", "Pyramid, commit")):
        a, b = find(mine, "W=8", ours), find(mine, "W=8", side)
        if a and b and "values" in a and "values" in b:
            value = factor(b, a)
            rows.append([f"commits by 8 writers, {ours.split(', ')[1]}, "
                         f"against {side}", side, f"{value:.1f}",
                         cpu_times(b, a), ">= 20", judged(value, 20)])
    return rows


def storage_figure(records):
    rows = []
    for r in pick(records, "storage", side="Pyramid"):
        value = r["median"] / r["ideal"]
        rows.append([f"storage of {r['case']}, of one copy + changed cells",
                     "", f"{value:.2f}", "", "<= 1.1",
                     "met" if value <= 1.1 else "MISSED"])
    return rows
