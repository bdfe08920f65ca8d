"""NumPy memmap: one flat row-major file. No chunks, no versions."""
import os

import numpy as np

from player import Store


class Peer(Store):
    def make(self, slate):
        self.slate = slate
        self.map = np.memmap(self.path, dtype=slate.dtype, mode="w+",
                             shape=slate.shape)
        self.map[...] = slate.source
        self.fd = os.open(self.path, os.O_RDWR)

    def close(self):
        del self.map
        os.close(self.fd)

    def read(self, box):
        return np.array(self.map[box])

    def update(self, box, cells):
        self.map[box] = cells
        if self.slate.sync:
            os.fdatasync(self.fd)

    def append(self, frame):
        shape = (self.map.shape[0] + 1,) + self.map.shape[1:]
        os.pwrite(self.fd, frame, self.map.nbytes)
        if self.slate.sync:
            os.fdatasync(self.fd)
        self.map = np.memmap(self.path, dtype=self.slate.dtype, mode="r+",
                             shape=shape)
