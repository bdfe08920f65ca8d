"""TileDB, dense array, tiles as large as the chunks, no filters. The array
stays open between reads. Every write is a fragment; snapshots are times, which
are counted by hand here so that no two are the same. With option "one" the
library's pools have one thread each, which suits small boxes."""

import numpy as np
import tiledb

from player import Store


class Peer(Store):
    def __init__(self, path, option):
        super().__init__(path, option)
        config = {"sm.fragment_info_preload_mbrs": "true"}
        if option == "one":
            config["sm.compute_concurrency_level"] = "1"
            config["sm.io_concurrency_level"] = "1"
        self.ctx = tiledb.Ctx(config)
        self.clock = 0
        self.stay = False

    def make(self, slate):
        self.slate = slate
        domain = tiledb.Domain(*[
            tiledb.Dim(name=f"d{i}", tile=c, dtype=np.uint64, ctx=self.ctx,
                       domain=(0, e - 1 if i or len(slate.shape) < 3
                               else 1 << 20))
            for i, (e, c) in enumerate(zip(slate.shape, slate.chunk))],
            ctx=self.ctx)
        filters = tiledb.FilterList(
            [tiledb.ZstdFilter(level=3)] if slate.pressed else [])
        tiledb.Array.create(self.path, tiledb.ArraySchema(
            domain=domain, sparse=False, ctx=self.ctx,
            attrs=[tiledb.Attr(name="v", dtype=slate.dtype, filters=filters,
                               ctx=self.ctx)]), ctx=self.ctx)
        self.at = slate.shape[0]
        self.clock = 1
        with tiledb.open(self.path, "w", ctx=self.ctx, timestamp=1) as a:
            a[tuple(slice(0, e) for e in slate.shape)] = np.ascontiguousarray(
                slate.source)
        self.reader = tiledb.open(self.path, "r", ctx=self.ctx)

    def join(self, slate):
        self.slate = slate
        self.at = slate.shape[0]
        self.stay = True  # others write too: times are the clock's
        self.reader = tiledb.open(self.path, "r", ctx=self.ctx)

    def close(self):
        self.reader.close()

    def read(self, box):
        got = self.reader[box]
        return got["v"] if isinstance(got, dict) else got

    def write(self, boxes, cells):
        when = None
        if not self.stay:
            self.clock += 1
            when = self.clock
        with tiledb.open(self.path, "w", ctx=self.ctx, timestamp=when) as a:
            for box, part in zip(boxes, cells):
                a[box] = part

    def update(self, box, cells):
        self.write([box], [cells])

    def refresh(self):
        self.reader.close()
        self.reader = tiledb.open(self.path, "r", ctx=self.ctx)

    def append(self, frame):
        box = (slice(self.at, self.at + 1),) + tuple(
            slice(0, e) for e in frame.shape[1:])
        self.at += 1
        self.write([box], [frame])

    def change(self, boxes, cells):
        self.write(boxes, cells)
        return self.clock

    def show(self, snapshot):
        if snapshot:
            self.reader.close()
            self.reader = tiledb.open(self.path, "r", ctx=self.ctx,
                                      timestamp=snapshot)
        elif self.reader.timestamp_range[1] < self.clock:
            self.refresh()

    def versions(self):
        return len(tiledb.array_fragments(self.path, ctx=self.ctx))

    def diff(self, a, b):
        """Boxes of the fragments written in between."""
        info = tiledb.array_fragments(self.path, ctx=self.ctx)
        return sum(1 for _, when in info.timestamp_range if a < when <= b)
