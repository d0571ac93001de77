"""Static pages of reports, from the templates here: no scripts, nothing from elsewhere."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import jinja2

#: Size of the area that the lines of a chart are in.
WIDTH: Final = 406
HEIGHT: Final = 164
#: Points of one line; more are not to be seen.
_MOST_POINTS: Final = 400
_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.PackageLoader(__package__),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
)

Line = Sequence[tuple[float, float]]


class Chart(NamedTuple):
    """Places and labels on both axes, and the points of each line by its name."""

    title: str
    ticks: list[tuple[float, str]]
    marks: list[tuple[float, str]]
    lines: dict[str, str]
    width: int = WIDTH
    height: int = HEIGHT


def page(template: str, **content: Any) -> str:
    """The page of the *template* with that content, which has the ``title``."""
    return _TEMPLATES.get_template(template).render(content)


def svg(chart: Chart) -> str:
    """The picture of *chart*, without the colours of a page."""
    parts: Any = _TEMPLATES.get_template("parts.html").module
    return str(parts.svg(chart)).strip()


def line_chart(title: str, lines: Mapping[str, Line], *, is_share: bool = True) -> Chart:
    """A chart of *lines* by name; the names are in the page's legend."""
    points = [point for line in lines.values() for point in line]
    last = max((x for x, _y in points), default=0.0) or 1.0
    highest = max((y for _x, y in points), default=0.0)
    step = nice_step((1.0 if is_share and highest > 0.5 else highest) / 4 or 0.25)
    top = max(step * math.ceil(highest / step - 1e-9), step)
    unit = nice_step(last / 6)

    def point(x: float, y: float) -> tuple[float, float]:
        return round(WIDTH * x / last, 1), round(HEIGHT - HEIGHT * y / top, 1)

    values = [number * step for number in range(round(top / step) + 1)]
    labels = [f"{each * 100:.4g} %" if is_share else f"{each:.6g}" for each in values]
    drawn = {}
    for name, line in lines.items():
        some = line[:: max(1, math.ceil(len(line) / _MOST_POINTS))]
        drawn[name] = " ".join("{},{}".format(*point(x, y)) for x, y in some)
    return Chart(
        title,
        [(point(0, value)[1], label) for value, label in zip(values, labels, strict=True)],
        [(point(n * unit, 0)[0], f"{n * unit:.4g}") for n in range(int(last / unit) + 1)],
        drawn,
    )


def nice_step(least: float) -> float:
    """The first of 1, 2, 2.5, 5 times a power of ten that is not below *least*."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * 0.999)
