"""expression.py - a function of many cells, by NumPy, in memory.

    python3 expression.py EXPRESSION FILE

FILE holds doubles. Says "ready" when they are in memory; then, for each line
that comes in, evaluates the expression of x and says how long that took
(seconds of wall and CPU time) and what one cell in the middle became.
"""
import sys
import time

import numpy as np


def main():
    code = compile(sys.argv[1], "expression", "eval")
    x = np.fromfile(sys.argv[2], dtype="<f8")
    names = {"x": x, "abs": np.abs}
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        y = eval(code, names)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(wall, cpu, float(y[len(y) // 3]).hex(), flush=True)
        del y


main()
