"""tensorstore, driver zarr3 on files. Options: "cache" gives it a cache that
holds the array and trusts it, "batch" starts all reads at once."""
import tensorstore as ts

from player import Store


class Peer(Store):
    def __init__(self, path, option):
        super().__init__(path, option)
        self.batch = option == "batch"

    def spec(self, slate):
        context = {"file_io_sync": slate.sync}
        if self.option == "cache":
            context["cache_pool"] = {"total_bytes_limit": 2 << 30}
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if slate.pressed:
            codecs.append({"name": "blosc", "configuration": {
                "cname": "zstd", "clevel": 5, "shuffle": "shuffle",
                "typesize": slate.dtype.itemsize}})
        return {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": self.path},
            "context": context,
            "recheck_cached_data": self.option != "cache",
            "recheck_cached_metadata": "open",
            "metadata": {
                "shape": slate.shape, "fill_value": 0.0,
                "data_type": {"f8": "float64", "f4": "float32"}[
                    slate.dtype.str[1:]],
                "chunk_grid": {"name": "regular", "configuration": {
                    "chunk_shape": slate.chunk}},
                "codecs": codecs}}

    def make(self, slate):
        self.array = ts.open(self.spec(slate), create=True,
                             delete_existing=True).result()
        self.array.write(slate.source).result()

    def read(self, box):
        return self.array[box].read().result()

    def read_many(self, boxes):
        with ts.Batch() as batch:
            futures = [self.array[box].read(batch=batch) for box in boxes]
        return [f.result() for f in futures]

    def update(self, box, cells):
        self.array[box].write(cells).result()

    def append(self, frame):
        end = self.array.shape[0]
        self.array = self.array.resize(
            exclusive_max=[end + 1] + [None] * (self.array.rank - 1),
            resize_metadata_only=True).result()
        self.array[end:end + 1].write(frame).result()
