"""Icechunk on the local file system, through zarr-python 3. Each update is a
commit of its own; one that meets another's rebases and tries again."""
import icechunk
import zarr
from zarr.codecs import ZstdCodec

from player import Store


class Peer(Store):
    def make(self, slate):
        self.slate = slate
        self.repo = icechunk.Repository.create(
            icechunk.local_filesystem_storage(self.path))
        session = self.repo.writable_session("main")
        array = zarr.create_array(
            store=session.store, name="a", shape=slate.shape,
            chunks=slate.chunk, dtype=slate.dtype,
            compressors=[ZstdCodec(level=3)] if slate.pressed else None,
            filters=None, fill_value=0)
        array[...] = slate.source
        self.snapshots = [session.commit("filled")]
        self.refresh()

    def join(self, slate):
        self.slate = slate
        self.repo = icechunk.Repository.open(
            icechunk.local_filesystem_storage(self.path))
        self.snapshots = []
        self.refresh()

    def refresh(self):
        self.reader = zarr.open_array(
            self.repo.readonly_session("main").store, path="a", mode="r")
        self.shown = 0

    def show(self, snapshot):
        if snapshot:
            store = self.repo.readonly_session(
                snapshot_id=self.snapshots[snapshot - 1]).store
            self.reader = zarr.open_array(store, path="a", mode="r")
            self.shown = snapshot
        elif self.shown:
            self.refresh()

    def read(self, box):
        return self.reader[box]

    def write(self, boxes, cells):
        """A commit; returns the snapshot, and how often another was first.
        Where that one changed the same chunk, its cells must not be lost: the
        update is done again on top of it."""
        conflicts, session = 0, self.fresh(boxes, cells)
        while True:
            try:
                return session.commit("update"), conflicts
            except icechunk.ConflictError:
                conflicts += 1
            try:
                session.rebase(icechunk.ConflictDetector())
            except (icechunk.RebaseFailedError, icechunk.IcechunkError):
                # the same chunk; or what we began with is not in the history
                # any more: on a file system commits can undo each other
                session = self.fresh(boxes, cells)

    def fresh(self, boxes, cells):
        session = self.repo.writable_session("main")
        array = zarr.open_array(session.store, path="a", mode="a")
        for box, part in zip(boxes, cells):
            array[box] = part
        return session

    def update(self, box, cells):
        return self.write([box], [cells])[1]

    def append(self, frame):
        session = self.repo.writable_session("main")
        zarr.open_array(session.store, path="a", mode="a").append(frame,
                                                                  axis=0)
        session.commit("append")

    def change(self, boxes, cells):
        self.snapshots.append(self.write(boxes, cells)[0])
        return len(self.snapshots)

    def versions(self):
        return sum(1 for _ in self.repo.ancestry(branch="main")) - 1

    def diff(self, a, b):
        diff = self.repo.diff(from_snapshot_id=self.snapshots[a - 1],
                              to_snapshot_id=self.snapshots[b - 1])
        return sum(len(c) for c in diff.updated_chunks.values())
