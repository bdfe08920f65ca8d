"""Plots as SVG, by hand: lines on logarithmic or linear axes, and dots on a
logarithmic scale. Plain shapes and text; they look the same in a browser, on a
code host and in print."""
import math
from xml.sax.saxutils import escape

COLOURS = ["#0b6e99", "#e8590c", "#5f8f3e", "#8f5fbf", "#c9a100", "#c2255c",
           "#5c6b73", "#12b886", "#8b4513", "#4263eb", "#a5b0b8", "#1f2933",
           "#f783ac"]
INK, SOFT, GRID = "#1f2933", "#66737d", "#e3e8eb"
FONT = "font-family=\"Helvetica, Arial, sans-serif\""


class Canvas:
    def __init__(self, width, height, title, subtitle=""):
        self.width, self.height, self.parts = width, height, []
        self.text(24, 32, title, size=18, weight="bold")
        if subtitle:
            self.text(24, 52, subtitle, size=12, colour=SOFT)

    def text(self, x, y, text, size=12, colour=INK, anchor="start",
             weight="normal", turn=0):
        spin = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'fill="{colour}" text-anchor="{anchor}" font-weight="{weight}"{spin}>'
            f'{escape(str(text))}</text>')

    def line(self, x1, y1, x2, y2, colour=GRID, width=1.0, dash=""):
        more = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"{more}/>')

    def path(self, points, colour, width=2.0, dash=""):
        more = f' stroke-dasharray="{dash}"' if dash else ""
        d = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="{d}" fill="none" stroke="{colour}" '
                          f'stroke-width="{width}"{more}/>')

    def dot(self, x, y, colour, r=4.0, title=""):
        tip = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" '
                          f'fill="{colour}">{tip}</circle>')

    def bar(self, x, y, w, h, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" '
                          f'width="{max(w, 0.5):.1f}" height="{h:.1f}" '
                          f'rx="2" fill="{colour}"/>')

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" '
                f'width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" {FONT}>\n'
                f'<rect width="{self.width}" height="{self.height}" '
                f'fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


class Scale:
    """Numbers to a stretch of the canvas."""

    def __init__(self, low, high, start, end, log=False):
        self.log, self.start, self.end = log, start, end
        self.low, self.high = low, high
        if self.low == self.high:
            self.high = self.low * 2 if self.low else 1

    def __call__(self, value):
        if self.log:
            part = (math.log(value) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low))
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self):
        if self.log:
            first = math.ceil(math.log10(self.low) - 1e-9)
            last = math.floor(math.log10(self.high) + 1e-9)
            step = max(1, (last - first + 6) // 7)
            if math.log10(self.high / self.low) < 2.5:
                every = [m * 10.0 ** e for e in range(first - 1, last + 1)
                         for m in (1, 2, 5)]
                return [t for t in every if self.low <= t * 1.0001 and
                        t <= self.high * 1.0001]
            return [10.0 ** e for e in range(first, last + 1, step)]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough)
        first = math.ceil(self.low / step)
        return [i * step for i in range(
            first, int(math.floor(self.high / step + 1e-9)) + 1)]


def tick_text(value):
    if value >= 1e6 and math.log10(value).is_integer():
        return f"10^{math.log10(value):.0f}"
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def bounds(values, log):
    low, high = min(values), max(values)
    if not log:
        return 0.0, high * 1.08
    steps = [m * 10.0 ** e for e in range(-9, 20) for m in (1, 2, 5)]
    return (max(s for s in steps if s <= low * 1.0001),
            min(s for s in steps if s >= high * 1.0001))


def apart(labels, gap, low, high):
    """Move labels (y, ...) so that none covers another."""
    labels = sorted(labels)
    for _ in range(60):
        for i in range(1, len(labels)):
            near = labels[i - 1][0] + gap - labels[i][0]
            if near > 0:
                labels[i - 1] = (labels[i - 1][0] - near / 2,
                                 *labels[i - 1][1:])
                labels[i] = (labels[i][0] + near / 2, *labels[i][1:])
        shift = max(0.0, labels[-1][0] - high) if labels else 0.0
        labels = [(max(low, y - shift), *rest) for y, *rest in labels]
    return labels


def lines(title, subtitle, series, x_name, y_name, log_x=False, log_y=False,
          x_ticks=None, strong=("Pyramid",), width=820, height=440):
    """series: {name: [(x, y), ...]}; names stand at the ends of lines."""
    c = Canvas(width, height, title, subtitle)
    longest = max([len(name) for name in series] + [10])
    left, right, top, bottom = 72, width - 30 - 7.2 * longest, 76, height - 52
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points if y > 0]
    if not xs or not ys:
        c.text(left, top + 40, "nothing was measured", colour=SOFT)
        return c.svg()
    if log_x:
        x_at = Scale(min(xs), max(xs), left, right, True)
    else:
        x_at = Scale(min(xs), max(xs), left, right)
    y_at = Scale(*bounds(ys, log_y), bottom, top, log_y)
    for y in y_at.ticks():
        c.line(left, y_at(y), right, y_at(y))
        c.text(left - 8, y_at(y) + 4, tick_text(y), 11, SOFT, "end")
    for x in x_ticks or x_at.ticks():
        c.line(x_at(x), bottom, x_at(x), bottom + 4, SOFT)
        c.text(x_at(x), bottom + 18, tick_text(x), 11, SOFT, "middle")
    c.line(left, bottom, right, bottom, SOFT)
    c.text((left + right) / 2, height - 12, x_name, 12, SOFT, "middle")
    c.text(20, (top + bottom) / 2, y_name, 12, SOFT, "middle", turn=-90)
    labels = []
    for i, (name, points) in enumerate(series.items()):
        points = sorted(p for p in points if p[1] > 0)
        if not points:
            continue
        colour = COLOURS[i % len(COLOURS)]
        bold = any(name.startswith(s) for s in strong)
        at = [(x_at(x), y_at(y)) for x, y in points]
        c.path(at, colour, 3.2 if bold else 1.8)
        for (px, py), (x, y) in zip(at, points):
            c.dot(px, py, colour, 4.5 if bold else 3.2, f"{name}: {y:g}")
        labels.append((at[-1][1], at[-1][0], name, colour, bold))
    for y, x, name, colour, bold in apart(labels, 14, top, bottom):
        c.text(right + 12, y + 4, name, 12, colour,
               weight="bold" if bold else "normal")
    return c.svg()


def dots(title, subtitle, rows, x_name, mark=1.0, width=760):
    """rows: {case: {side: value}}: a line per case, a dot per side, on a
    logarithmic scale; `mark` is where Pyramid stands."""
    sides = []
    for values in rows.values():
        sides += [s for s in values if s not in sides]
    legend = (len(sides) + 3) // 4
    height = 100 + 18 * legend + 30 * len(rows) + 40
    c = Canvas(width, height, title, subtitle)
    left, right, top = 220, width - 30, 84 + 18 * legend
    bottom = top + 30 * len(rows)
    every = [v for values in rows.values() for v in values.values() if v > 0]
    if not every:
        c.text(left, top, "nothing was measured", colour=SOFT)
        return c.svg()
    x_at = Scale(*bounds(every + [mark], True), left, right, True)
    for i, side in enumerate(sides):
        x, y = 24 + i % 4 * 180, 76 + i // 4 * 18
        c.dot(x + 5, y - 4, COLOURS[i % len(COLOURS)], 5)
        c.text(x + 16, y, side, 12)
    for x in x_at.ticks():
        c.line(x_at(x), top, x_at(x), bottom)
        c.text(x_at(x), bottom + 18, f"{x:g}", 11, SOFT, "middle")
    c.line(x_at(mark), top - 6, x_at(mark), bottom, COLOURS[0], 2)
    for row, (case, values) in enumerate(rows.items()):
        y = top + 30 * row + 15
        c.line(left, y, right, y, GRID)
        c.text(left - 10, y + 4, case, 12, INK, "end")
        for side, value in values.items():
            if value > 0:
                c.dot(x_at(value), y, COLOURS[sides.index(side) %
                                              len(COLOURS)], 5.5,
                      f"{side}: {value:.3g}")
    c.text((left + right) / 2, height - 10, x_name, 12, SOFT, "middle")
    return c.svg()


def bars(title, subtitle, values, unit, mark=None, mark_name="", width=760):
    """values: {name: number}."""
    height = 100 + 34 * len(values) + (30 if mark else 10)
    c = Canvas(width, height, title, subtitle)
    left, right, top = 170, width - 110, 76
    most = max(list(values.values()) + [mark or 0]) or 1
    x_at = Scale(0, most, left, right)
    for i, (name, value) in enumerate(values.items()):
        y = top + 34 * i
        c.bar(left, y, x_at(value) - left, 22, COLOURS[i % len(COLOURS)])
        c.text(left - 10, y + 16, name, 12, INK, "end")
        c.text(x_at(value) + 8, y + 16, f"{value:,.0f} {unit}", 12, SOFT)
    if mark:
        c.line(x_at(mark), top - 8, x_at(mark), top + 34 * len(values), INK, 1,
               "4 3")
        c.text(x_at(mark) + 4, top + 34 * len(values) + 12, mark_name, 11,
               SOFT)
    return c.svg()
