"""Line charts as inline SVG; the colours are those of the page's style."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH: Final = 460
HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 26
#: Points of one line; more are not to be seen.
_MOST_POINTS: Final = 400

Line = Sequence[tuple[float, float]]


def line_chart(title: str, lines: Mapping[str, Line], *, is_share: bool = True) -> str:
    """A chart of *lines* by name, x in days; the names are in the page's legend."""
    points = [point for line in lines.values() for point in line]
    last = max((x for x, _y in points), default=0.0) or 1.0
    highest = max((y for _x, y in points), default=0.0)
    step = nice_step((1.0 if is_share and highest > 0.5 else highest) / 4 or 0.25)
    top = max(step * math.ceil(highest / step - 1e-9), step)
    parts = [
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(title)}">'
    ]
    for number in range(round(top / step) + 1):
        value = number * step
        y = _y(value, top)
        label = f"{value * 100:.4g} %" if is_share else f"{value:.6g}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y + 4:g}" text-anchor="end">{label}</text>')
    unit = nice_step(last / 6)
    for number in range(int(last / unit) + 1):
        x = _x(number * unit, last)
        parts.append(
            f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="middle">{number * unit:.4g}</text>'
        )
    for number, (name, line) in enumerate(lines.items()):
        stride = max(1, math.ceil(len(line) / _MOST_POINTS))
        drawn = " ".join(f"{_x(x, last)},{_y(y, top)}" for x, y in line[::stride])
        parts.append(f'<polyline class="c{number % 6}" points="{drawn}">')
        parts.append(f"<title>{escape(name)}</title></polyline>")
    return "".join([*parts, "</svg></figure>"])


def nice_step(least: float) -> float:
    """The first of 1, 2, 2.5, 5 times a power of ten that is not below *least*."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * 0.999)


def _x(value: float, last: float) -> float:
    return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * value / last, 1)


def _y(value: float, top: float) -> float:
    return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / top, 1)
