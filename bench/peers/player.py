"""player.py - a player in Python: does what bench.py tells it, line by line.

    python3 player.py PEER DIRECTORY [OPTION]

bench/player.h tells the lines. A peer is a class with the methods of `Store`
below; what it cannot do it leaves as it is there, and its column says so.
Loops are the same for all peers: places are known before the clock starts.
"""
import importlib
import json
import os
import sys
import time

import numpy as np

from places import Random

DTYPES = {"f64": "<f8", "f32": "<f4"}


class Store:
    """What a peer does. One array each, kept in self.path."""

    batch = False  # read_many() is used where boxes are read

    def __init__(self, path, option):
        self.path, self.option = path, option

    def make(self, slate):
        raise NotImplementedError

    def join(self, slate):
        raise NotImplementedError

    def close(self):
        pass

    def read(self, box):
        raise NotImplementedError

    def read_many(self, boxes):
        return [self.read(box) for box in boxes]

    def update(self, box, cells):
        """Make it durable as slate.sync says, and a version if there are
        any. Returns the number of conflicts on the way."""
        raise NotImplementedError

    def append(self, frame):
        raise NotImplementedError

    def mean(self, box):
        return float(self.read(box).mean())

    def change(self, boxes, cells):
        """Boxes as one version; returns its number, from 1."""
        raise NotImplementedError

    def show(self, snapshot):
        """Read from that snapshot from now on; 0: the newest."""
        if snapshot:
            raise NotImplementedError

    def refresh(self):
        """Before reading what others may have written."""

    def versions(self):
        """How many there are, the first fill among them."""
        raise NotImplementedError

    def diff(self, a, b):
        raise NotImplementedError


class Slate:
    """An array, and the file of cells that it was filled from."""

    def __init__(self, words):
        self.name = words["array"]
        self.shape = numbers(words["shape"])
        self.chunk = numbers(words["chunk"])
        self.dtype = np.dtype(DTYPES[words.get("type", "f64")])
        self.sync = words.get("sync", "0") == "1"
        self.pressed = words.get("pressed", "0") == "1"
        self.flat = np.memmap(words["file"], dtype=self.dtype, mode="r")
        n = int(np.prod(self.shape))
        self.source = self.flat[:n].reshape(self.shape) if n else None
        self.store = None

    def boxes(self, size, count, random):
        """Slices at random places."""
        out = []
        for _ in range(count):
            at = [random.place(e, s) for e, s in zip(self.shape, size)]
            out.append(tuple(slice(a, a + s) for a, s in zip(at, size)))
        return out

    def some_cells(self, size, random, boxes=1):
        n = int(np.prod(size)) * boxes
        room = self.flat.nbytes - n * self.dtype.itemsize
        at = random.next() % (room // 8 + 1) * 8 // self.dtype.itemsize
        cells = np.array(self.flat[at:at + n])
        return cells.reshape((boxes,) + tuple(size) if boxes > 1 else size)


def numbers(text):
    return tuple(int(n) for n in text.split(","))


def same(got, want):
    return np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(
        want).tobytes()


class Clock:
    def __enter__(self):
        self.wall, self.cpu = time.monotonic(), time.process_time()
        return self

    def __exit__(self, *_):
        self.wall = time.monotonic() - self.wall
        self.cpu = time.process_time() - self.cpu


class Player:
    def __init__(self, peer, home, option):
        self.peer, self.home, self.option = peer, home, option
        self.slates = {}

    def open(self, words, how):
        slate = Slate(words)
        slate.store = self.peer(os.path.join(self.home, slate.name),
                                self.option)
        with Clock() as clock:
            getattr(slate.store, how)(slate)
        self.slates[slate.name] = slate
        return answer(1, clock)

    def do_make(self, words):
        return self.open(words, "make")

    def do_join(self, words):
        return self.open(words, "join")

    def do_drop(self, words):
        self.slates.pop(words["array"]).store.close()
        return {"n": 1}

    def do_read(self, words):
        slate = self.slates[words["array"]]
        boxes = slate.boxes(numbers(words["size"]), int(words["count"]),
                            Random(int(words.get("seed", 7))))
        slate.store.show(int(words.get("snapshot", 0)))
        with Clock() as clock:
            if slate.store.batch:
                slate.store.read_many(boxes)
            else:
                for box in boxes:
                    slate.store.read(box)
        slate.store.show(0)
        return answer(len(boxes), clock)

    def do_check(self, words):
        slate = self.slates[words["array"]]
        boxes = slate.boxes(numbers(words["size"]),
                            int(words.get("count", 8)),
                            Random(int(words.get("seed", 99))))
        slate.store.show(int(words.get("snapshot", 0)))
        for box in boxes:
            got = slate.store.read_many([box])[0]
            if not same(got, slate.source[box]):
                raise ValueError("cells read are not those written")
        slate.store.show(0)
        return {"n": len(boxes)}

    def do_update(self, words):
        slate = self.slates[words["array"]]
        size, random = numbers(words["size"]), Random(int(words["seed"]))
        count, seconds = int(words.get("count", 0)), float(
            words.get("seconds", 0))
        todo = []
        for _ in range(count or 2000):
            todo.append((slate.boxes(size, 1, random)[0],
                         slate.some_cells(size, random)))
        n, conflicts, took = 0, 0, []
        with Clock() as clock:
            start = last = time.monotonic()
            while n < count if count else last - start < seconds:
                box, cells = todo[n % len(todo)]
                conflicts += slate.store.update(box, cells) or 0
                now = time.monotonic()
                took.append(now - last)
                n, last = n + 1, now
        if words.get("verify", "1") == "1":
            slate.store.refresh()
            if not same(slate.store.read_many([box])[0], cells):
                raise ValueError("an update cannot be read back")
        return latencies(n, clock, took, conflicts)

    def do_watch(self, words):
        slate = self.slates[words["array"]]
        random, took = Random(int(words["seed"])), []
        boxes = slate.boxes(numbers(words["size"]), 2000, random)
        with Clock() as clock:
            start = last = time.monotonic()
            while last - start < float(words["seconds"]):
                slate.store.refresh()
                slate.store.read(boxes[len(took) % len(boxes)])
                now = time.monotonic()
                took.append(now - last)
                last = now
        return latencies(len(took), clock, took, 0)

    def do_append(self, words):
        slate = self.slates[words["array"]]
        frame = (1,) + slate.shape[1:]
        n = int(np.prod(frame))
        cells = [np.array(slate.flat[i * n % (slate.flat.size - n + 1):][:n])
                 .reshape(frame) for i in range(int(words["count"]))]
        with Clock() as clock:
            for one in cells:
                slate.store.append(one)
        slate.shape = (slate.shape[0] + len(cells),) + slate.shape[1:]
        last = (slice(slate.shape[0] - 1, slate.shape[0]),) + tuple(
            slice(0, e) for e in slate.shape[1:])
        slate.store.refresh()
        if not same(slate.store.read_many([last])[0], cells[-1]):
            raise ValueError("what was appended cannot be read back")
        return answer(len(cells), clock)

    def do_mean(self, words):
        slate = self.slates[words["array"]]
        boxes = slate.boxes(numbers(words["size"]), int(words["count"]),
                            Random(int(words.get("seed", 7))))
        with Clock() as clock:
            total = sum(slate.store.mean(box) for box in boxes)
        return answer(len(boxes), clock, value=total / len(boxes))

    def do_change(self, words):
        slate = self.slates[words["array"]]
        size, random = numbers(words["size"]), Random(int(words["seed"]))
        boxes, last = int(words.get("boxes", 1)), 0
        todo = []
        for _ in range(int(words.get("versions", 1))):
            places = slate.boxes(size, boxes, random)
            cells = slate.some_cells(size, random, boxes)
            todo.append((places, cells if boxes > 1 else cells[None]))
        with Clock() as clock:
            for places, cells in todo:
                last = slate.store.change(places, cells)
        slate.store.refresh()
        return answer(len(todo), clock, snapshot=last)

    def do_versions(self, words):
        return {"n": self.slates[words["array"]].store.versions()}

    def do_diff(self, words):
        slate = self.slates[words["array"]]
        count = int(words.get("count", 1))
        with Clock() as clock:
            for _ in range(count):
                boxes = slate.store.diff(int(words["a"]), int(words["b"]))
        return answer(count, clock, boxes=boxes)


def answer(n, clock, **more):
    return {"n": n, "wall": clock.wall, "cpu": clock.cpu, **more}


def latencies(n, clock, took, conflicts):
    took.sort()
    return answer(n, clock, conflicts=conflicts, p50=took[n // 2],
                  p99=took[n * 99 // 100], worst=took[-1])


def main():
    name, home = sys.argv[1:3]
    option = sys.argv[3] if len(sys.argv) > 3 else ""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    try:
        peer = importlib.import_module("peer_" + name).Peer
    except Exception as error:  # the column will say so
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}),
              file=out, flush=True)
        return
    player = Player(peer, home, option)
    for line in sys.stdin:
        verb, *rest = line.split()
        words = dict(word.split("=", 1) for word in rest)
        try:
            reply = getattr(player, "do_" + verb)(words)
        except NotImplementedError:
            reply = {"cannot": verb}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
