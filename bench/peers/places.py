"""Random numbers and places, the same as in bench/common.c."""

MASK = (1 << 64) - 1


class Random:
    """The same numbers as bench_random() in common.c."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def place(self, extent, size):
        return self.next() % (extent - size + 1)
