#!/usr/bin/env python3
"""harness_test.py - the driver of the benchmarks counts and compares right,
and the players do what they are told.

    harness_test.py BUILD

Nothing is timed here. BUILD/bench holds the programs.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

BUILD = os.path.abspath(sys.argv[1])
BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path[:0] = [BENCH, os.path.join(BENCH, "peers")]

from harness import compare, programs, report, stats, svg, turns  # noqa: E402
from harness.players import Player, plain  # noqa: E402
from harness.turns import Failed, records, take_turns  # noqa: E402
from places import Random  # noqa: E402


def program(name):
    return os.path.join(BUILD, "bench", "bench-" + name)


def the_median_of_an_even_count_is_between_the_two_in_the_middle():
    assert stats.median([3, 1, 2]) == 2
    assert stats.median([4, 1, 2, 3]) == 2.5
    assert stats.median([]) != stats.median([])  # not a number


def ratios_are_taken_pair_by_pair():
    # the quotient of the medians would be 1
    assert stats.ratio([1, 2, 30], [2, 1, 10]) == 2


def spread_is_half_the_range_over_the_median():
    assert stats.spread([90, 100, 120]) == 0.15
    assert stats.spread([5]) == 0


def numbers_keep_three_digits():
    assert [stats.short(x) for x in (12345.6, 123.4, 1.234, 0.01234)] == [
        "12346", "123", "1.23", "0.0123"]
    assert stats.times(123.4) == "123" and stats.times(1.26) == "1.3"


def sides_take_turns_and_each_is_first_once():
    order = []
    sides = {n: lambda n=n: order.append(n) or {"wall": 1} for n in "ABC"}
    results, faults = take_turns(sides, 3, 60)
    assert "".join(order) == "ABCBCACAB" and not faults
    assert all(len(r) == 3 for r in results.values())


def when_time_is_over_no_new_round_begins_after_the_least():
    count = []
    take_turns({"A": lambda: count.append(1) or {}}, 50, -1, least=2)
    assert len(count) == 2


def past_the_deadline_of_the_run_everyone_has_one_turn():
    count = []
    turns.deadline = 0
    take_turns({"A": lambda: count.append(1) or {}}, 50, 60, least=2)
    turns.deadline = float("inf")
    assert len(count) == 1


def a_side_that_fails_is_named_and_the_others_go_on():
    def fail():
        raise Failed("no such library")
    results, faults = take_turns({"A": lambda: {"wall": 2}, "B": fail}, 2, 60)
    made = records("c", "g", results, faults, lambda r: r["wall"], "us",
                   "less")
    assert [r["side"] for r in made] == ["A", "B"]
    assert made[0]["median"] == 2 and made[1]["fault"] == "no such library"


def faults_are_one_line_without_folders():
    assert plain("Error: /some/folder/run-1/file not found\n  at y.rs:3") == (
        "Error: .../file not found")
    assert plain("") == "failed"


def figure(side, median, better="less", spread=0.02, case="box"):
    values = [median * (1 - spread), median, median * (1 + spread)]
    return {"group": "daily", "case": case, "side": side, "unit": "us",
            "better": better, "cpu": median, "cpu_unit": "us",
            **stats.summary(values)}


def a_regression_is_worse_whichever_way_is_good():
    old = [figure("A", 10), figure("B", 10, "more")]
    rows, worse = compare.compare(old, [figure("A", 20),
                                        figure("B", 20, "more")])
    assert worse == 1
    assert [row[-1] for row in rows] == ["WORSE", "better"]


def a_change_within_the_spread_is_no_regression():
    old, new = [figure("A", 10, spread=0.3)], [figure("A", 13, spread=0.3)]
    assert compare.compare(old, new)[1] == 0
    old, new = [figure("A", 10)], [figure("A", 13)]
    assert compare.compare(old, new)[1] == 1


def compared_files_may_hold_different_cases():
    rows, worse = compare.compare([figure("A", 1)], [figure("B", 9)])
    assert rows == [] and worse == 0


def plots_are_well_formed_whatever_names_they_show():
    names = {"<&\"'>": [(1, 10), (4, 1000)], "Pyramid": [(1, 5), (4, 20)],
             "one": [(2, 3)]}
    for picture in (svg.lines("a < b", "x & y", names, "P", "MB/s", True,
                              True),
                    svg.lines("t", "", {"none": []}, "x", "y"),
                    svg.dots("t", "", {"row": {"A": 0.01, "B": 1e5}}, "x"),
                    svg.bars("t", "", {"A & B": 3.0}, "MB", 2.0, "<here>")):
        root = xml.fromstring(picture)
        assert root.tag.endswith("svg")


def labels_at_the_ends_of_lines_do_not_cover_each_other():
    placed = svg.apart([(100, "a"), (101, "b"), (102, "c")], 14, 0, 400)
    ys = [y for y, _ in placed]
    assert all(b - a > 13 for a, b in zip(ys, ys[1:]))


def tables_show_ratios_and_say_why_a_column_is_empty():
    text, plots = report.render([
        {"machine": None}, figure("Pyramid", 10), figure("Zarr", 250),
        {"group": "daily", "case": "box", "side": "TileDB", "unit": "us",
         "better": "less", "fault": "tiledb could not be installed"}])
    assert "250 ±2% (25x)" in text
    assert "TileDB, box: tiledb could not be installed" in text
    assert xml.fromstring(plots["daily.svg"]) is not None


def figures_to_reach_are_judged_by_the_peers_best_setting():
    def dice(side, rate):
        return dict(figure(side, rate, "more"), group="weak", phase="write",
                    case="write P=4", p=4, durability="os", unit="MB/s")
    text = report.figures([dice("Pyramid", 4000), dice("MPI-IO ind", 1000),
                           dice("MPI-IO coll", 1500)])
    line = next(x for x in text.splitlines() if "flat file" in x)
    assert "MPI-IO coll" in line and "2.67" in line and "met" in line


def what_was_written_by_hand_stays():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "b.md")
        with open(path, "w") as f:
            f.write("before\n<!-- results: begin -->\nold\n"
                    "<!-- results: end -->\nafter\n")
        report.write([figure("Pyramid", 1)], path, os.path.join(folder, "p"))
        with open(path) as f:
            text = f.read()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "old" not in text and "| box, us |" in text


def rows_of_programs_become_records():
    line = json.dumps({"table": "Reads", "columns": ["case", "pyramid us",
                                                     "target"],
                       "row": ["box", "12.5", "<= 2"]})
    made = programs.records("boxes", line)
    assert len(made) == 2
    assert made[1]["median"] == 12.5 and made[1]["better"] == "less"


def places_are_the_same_in_c_and_in_python():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cells")
        subprocess.run([program("cells"), path, "f64", "4", "random"],
                       check=True)
        with open(path, "rb") as f:
            cells = struct.unpack("<4d", f.read())
    random = Random(1)
    assert list(cells) == [(random.next() >> 11) * 2.0 ** -53
                           for _ in range(4)]


def every_plain_side_of_dicing_reads_what_it_wrote():
    with tempfile.TemporaryDirectory() as folder:
        for side in ("raw", "floor", "flat", "pyramid"):
            done = subprocess.run(
                [program("dicing"), side, "2", "2", "1", "2", "os"],
                capture_output=True, text=True, check=True,
                env=dict(os.environ, BENCH_DIR=folder))
            phases = [json.loads(x) for x in done.stdout.splitlines()]
            assert [p["phase"] for p in phases] == ["write", "read", "again"]
            assert all(p["bytes"] == 8 << 20 for p in phases)
        assert os.listdir(folder) == []


def a_player_does_what_it_is_told_and_checks_its_cells():
    with tempfile.TemporaryDirectory() as folder:
        cells = os.path.join(folder, "cells")
        subprocess.run([program("cells"), cells, "f64", str(1 << 17),
                        "random"], check=True)
        player = Player([program("play_pyramid"), "@"],
                        os.path.join(folder, "home"))
        player.ask("make", array="a", shape=(128, 128), chunk=(32, 32),
                   type="f64", file=cells)
        assert player.ask("check", array="a", size=(20, 30))["n"] == 8
        assert player.ask("read", array="a", size=(5, 5), count=7)["n"] == 7
        assert player.ask("update", array="a", size=(8, 8), count=5,
                          seed=1)["n"] == 5
        made = player.ask("change", array="a", size=(8, 8), boxes=3,
                          versions=2, seed=4)
        assert made["snapshot"] == 8
        assert player.ask("diff", array="a", a=7, b=8)["boxes"] >= 1
        assert player.ask("versions", array="a")["n"] == 8
        player.ask("check", array="a", size=(9, 9), snapshot=1)
        player.ask("drop", array="a")
        player.end()


def a_player_that_reads_wrong_cells_is_found_out():
    with tempfile.TemporaryDirectory() as folder:
        cells = os.path.join(folder, "cells")
        subprocess.run([program("cells"), cells, "f64", str(1 << 14),
                        "random"], check=True)
        player = Player([program("play_pyramid"), "@"],
                        os.path.join(folder, "home"))
        player.ask("make", array="a", shape=(128, 128), chunk=(32, 32),
                   type="f64", file=cells)
        player.ask("update", array="a", size=(128, 128), count=1, seed=1)
        with open(cells, "r+b") as f:
            f.write(bytes(1 << 17))
        try:
            player.ask("check", array="a", size=(20, 30))
        except Failed as fault:
            assert "not those written" in str(fault)
        else:
            raise AssertionError("nothing was noticed")
        player.end()


def main():
    cases = [f for name, f in list(globals().items())
             if callable(f) and "_" in name and f.__module__ == "__main__"
             and f.__code__.co_argcount == 0]
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for number, case in enumerate(cases, 1):
        try:
            case()
            print(f"ok {number} {case.__name__}", flush=True)
        except Exception as error:
            failed = 1
            print(f"not ok {number} {case.__name__}")
            print(f"# {type(error).__name__}: {error}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
