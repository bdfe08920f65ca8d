"""HDF5 through h5py, for the price of the call from Python: the figures of
HDF5 itself are those of play_hdf5.c."""
import h5py

from player import Store


class Peer(Store):
    def make(self, slate):
        self.slate = slate
        self.file = h5py.File(self.path, "w", libver="latest")
        self.set = self.file.create_dataset(
            "a", shape=slate.shape, chunks=slate.chunk, dtype=slate.dtype,
            compression="gzip" if slate.pressed else None)
        self.set[...] = slate.source
        self.file.flush()

    def close(self):
        self.file.close()

    def read(self, box):
        return self.set[box]

    def update(self, box, cells):
        self.set[box] = cells
        self.file.flush()
