"""Medians, spread, and ratios of repetitions that ran side by side."""
import math


def median(values):
    v = sorted(values)
    if not v:
        return math.nan
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def ratio(a, b):
    """The median of a[i] / b[i]."""
    return median([x / y for x, y in zip(a, b) if y])


def spread(values):
    """Half of the way from least to most, as a part of the median."""
    m = median(values)
    if len(values) < 2 or not m:
        return 0.0
    return (max(values) - min(values)) / 2 / abs(m)


def short(x):
    """A number as people write it: three digits that count."""
    if x is None or math.isnan(x):
        return ""
    if x == 0:
        return "0"
    digits = 2 - int(math.floor(math.log10(abs(x))))
    if digits <= 0:
        return f"{x:.0f}"
    return f"{x:.{min(digits, 6)}f}"


def times(x):
    """A factor: two digits that count."""
    return f"{x:.0f}" if x >= 9.95 else f"{x:.2g}"


def summary(values):
    return {"median": median(values), "least": min(values),
            "most": max(values), "spread": round(spread(values), 4),
            "n": len(values), "values": values}
