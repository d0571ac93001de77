"""A plan as one static page, in the style of a replay's report."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.replay import pages

HEADS: Final = ("wave", "server", "from", "to", "MB", "vCPUs", "GB", "reason", "alternates")


def summary(found: Mapping[str, Any]) -> str:
    """One line on what the plan reaches."""
    waves = max((each["wave"] for each in found["moves"]), default=0)
    hosts = f" ({', '.join(sorted(set(found['hosts'])))})" if found["hosts"] else ""
    cut = "; the time was over before the search" if found["is_cut_off"] else ""
    return (
        f"{found['goal']}: {found['reached']} of {found['wanted']}{hosts}, "
        f"{len(found['moves'])} moves in {waves} waves{cut}"
    )


def rows(found: Mapping[str, Any]) -> Iterator[list[str]]:
    """The moves as rows of a table under HEADS."""
    for each in found["moves"]:
        numbers = (each["memory_mb"], each["vcpus"], each["disk_gb"])
        names = (each["wave"], each["server"], each["source"], each["target"])
        alternates = ", ".join(each["alternates"]) or "-"
        yield [*map(str, (*names, *numbers)), each["reason"], alternates]


def stuck_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each server that stays."""
    for each in found["stuck"]:
        where = f" on {each['host']}" if each["host"] else ""
        yield f"{each['server']}{where} stays: {each['reason']}"


def to_html(found: Mapping[str, Any]) -> str:
    """The page of a plan in the form of ``Plan.to_dict``."""
    fleets = (found["before"], found["after"])
    lines = {name: list(enumerate(shares, 1)) for name, shares in found["memory"].items()}
    return pages.page(
        "plan.html",
        title="Plan of moves",
        summary=summary(found),
        counts=[[name.replace("_", " "), *(each[name] for each in fleets)] for name in fleets[0]],
        memory=list(lines),
        chart=pages.line_chart("Share of the memory of each host", lines),
        heads=HEADS,
        rows=list(rows(found)),
        stuck=list(stuck_lines(found)),
    )
