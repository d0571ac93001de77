"""Pictures of results as SVG; needs the extra ``bench``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot, ticker

from benchmarks.report import median
from benchmarks.workload import Plot

INCHES = (6.4, 3.6)
MARKERS = "osD^v"

matplotlib.use("svg")
#: Texts stay texts, and the same numbers make the same file.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "benchmarks"})


def draw(plot: Plot, result: Mapping[str, Any], folder: Path) -> Path | None:
    """Write ``<name>.svg`` into *folder*; None if *result* has not all the subjects."""
    named = {subject for line in plot.lines.values() for subject in line}
    if not named <= result["subjects"].keys():
        return None
    figure, axes = pyplot.subplots(figsize=INCHES, layout="constrained")
    for marker, (label, subjects) in zip(MARKERS, plot.lines.items(), strict=False):
        points = [_point(plot, result, subject) for subject in subjects]
        if len(points) == 1:
            axes.axhline(points[0][1], linestyle="--", color="gray", label=label)
        else:
            axes.plot(*zip(*points, strict=True), marker=marker, label=label)
    _dress(axes, plot)
    path = folder / f"{plot.name}.svg"
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return path


def _dress(axes: Any, plot: Plot) -> None:
    if plot.x_from_zero:
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(left=-0.2)
    else:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.6g}"))
    axes.yaxis.set_minor_formatter(ticker.LogFormatter(minor_thresholds=(2, 0.5)))
    axes.set(title=plot.title, xlabel=plot.x_label, ylabel=plot.y_label)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()


def _point(plot: Plot, result: Mapping[str, Any], subject: str) -> tuple[float, float]:
    measured = result["subjects"][subject]
    return _x(plot, result, subject), median(measured[plot.y])


def _x(plot: Plot, result: Mapping[str, Any], subject: str) -> float:
    """A metric of the subject, or one of its settings (``fleet.hosts``)."""
    measured = result["subjects"][subject]
    if plot.x in measured:
        return median(measured[plot.x])
    setting: Any = result["settings"][subject]
    for name in plot.x.split("."):
        setting = setting[name]
    return float(setting)
