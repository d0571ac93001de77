"""The page of all options, with the names that they had in other releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oslo_config import cfg

from scheduler import conf as project_options
from scheduler.conf import rereading

FILE = Path("docs/options.md")
HEAD = """# Every option

Made from the options themselves; [nova.conf.sample](../etc/nova/nova.conf.sample) has each with
its whole description, and those of the libraries (message bus, databases, log), which have the
names they have in Nova. *Older names* are those of Havana to today that are still read: a file
that was written for Nova need not be changed. *Reload* says whether SIGHUP changes it without a
restart.
"""
COLUMNS = "| Option | Default | Older names | Reload | What |\n|---|---|---|---|---|\n"


def text_of() -> str:
    """The page."""
    groups: dict[str, list[cfg.Opt]] = {}
    for group, options in project_options.list_opts():
        groups.setdefault(group if isinstance(group, str) else group.name, []).extend(options)
    sections = [HEAD]
    for name, options in groups.items():
        rows = [_row(name, option) for option in sorted(options, key=lambda each: each.name)]
        sections.append(f"## [{name}]\n\n{COLUMNS}" + "".join(rows))
    return "\n".join(sections)


def _row(group: str, option: cfg.Opt) -> str:
    older = sorted(set(_older_names(group, option)))
    cells = (
        f"`{option.dest}`",
        _default(option),
        "<br>".join(older),
        "yes" if {(group, option.dest), (group, rereading.ALL)} & rereading.LIVE else "",
        _first_sentence(option.help or ""),
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def _older_names(group: str, option: cfg.Opt) -> Iterator[str]:
    for each in option.deprecated_opts:
        where, name = each.group or group, (each.name or option.name).replace("-", "_")
        if (where, name) != (group, option.dest):
            yield f"`[{where}] {name}`"


def _default(option: cfg.Opt) -> str:
    value: Any = option.default if option.sample_default is None else option.sample_default
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(f"`{each}`" for each in value)
    return f"`{value}`" if str(value) else "empty"


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")
