"""The page of all options, with the names that they had in other releases."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oslo_config import cfg

from scheduler import conf as project_options
from scheduler.conf import rereading

FILE = Path("docs/options.md")
WIDTH = 110
HEAD = """# Options

Made from the options themselves. The [sample](../etc/nova/nova.conf.sample) has those of the
libraries (message bus, databases, log), too, under the names they have in Nova. *Older names* are
still read: a file that was written for Nova works. *Reload* marks options that SIGHUP changes
without a restart.
"""


def text_of() -> str:
    """The page."""
    groups: dict[str, list[cfg.Opt]] = {}
    for group, options in project_options.list_opts():
        groups.setdefault(group if isinstance(group, str) else group.name, []).extend(options)
    sections = [HEAD]
    for name, options in groups.items():
        entries = [_entry(name, option) for option in sorted(options, key=lambda each: each.name)]
        sections.append(f"## [{name}]\n\n" + "\n".join(entries))
    return "\n".join(sections)


def _entry(group: str, option: cfg.Opt) -> str:
    """A heading, a line of facts, and the whole help."""
    default, older = _default(option), sorted(set(_older_names(group, option)))
    facts = [f"Default {default}." if default else "No default."]
    if {(group, option.dest), (group, rereading.ALL)} & rereading.LIVE:
        facts.append("Reload.")
    if older:
        facts.append(f"Older names: {', '.join(older)}.")
    paragraphs = [" ".join(facts), *_paragraphs(option.help or "")]
    return f"### `{option.dest}`\n\n" + "\n".join(f"{_wrapped(each)}\n" for each in paragraphs)


def _paragraphs(text: str) -> list[str]:
    """The help with a full stop at its end; what looks like markup is left as it is."""
    found = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
    escaped = [re.sub(r"(?<!`)<([^`>]*)>(?!`)", r"\\<\1\\>", each) for each in found]
    return [each if each[-1] in ".!?:`" else f"{each}." for each in escaped]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


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
