"""zarr-python 3, local store. With option "zarrs" the codec pipeline in Rust
that its documentation names for speed."""
import os

import zarr
from zarr.codecs import ZstdCodec

from player import Store


class Peer(Store):
    def __init__(self, path, option):
        super().__init__(path, option)
        if option == "zarrs":
            import zarrs  # noqa: F401 (registers itself)
            zarr.config.set(
                {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

    def make(self, slate):
        self.slate = slate
        self.array = zarr.create_array(
            store=zarr.storage.LocalStore(self.path), shape=slate.shape,
            chunks=slate.chunk, dtype=slate.dtype,
            compressors=[ZstdCodec(level=3)] if slate.pressed else None,
            filters=None, fill_value=0)
        self.array[...] = slate.source

    def read(self, box):
        return self.array[box]

    def update(self, box, cells):
        self.array[box] = cells
        self.sync(box)

    def sync(self, box):
        """The library offers no sync: every file that was written."""
        if not self.slate.sync:
            return
        names = [[]]
        for part, chunk in zip(box, self.slate.chunk):
            first, last = part.start // chunk, (part.stop - 1) // chunk
            names = [n + [i] for n in names for i in range(first, last + 1)]
        for name in names:
            fd = os.open(os.path.join(self.path, "c", *map(str, name)),
                         os.O_RDWR)
            os.fdatasync(fd)
            os.close(fd)

    def append(self, frame):
        self.array.append(frame, axis=0)
        end = self.array.shape[0]
        self.sync((slice(end - 1, end),) + tuple(
            slice(0, e) for e in self.array.shape[1:]))
