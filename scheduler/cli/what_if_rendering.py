"""Two decisions side by side, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

_MOST_SERVERS: Final = 20
_MOST_HOSTS: Final = 10
Told = Mapping[str, Any]


def show(console: Console, answer: Told) -> None:
    """Print an answer of ``what_if``; the first line says whether the changes matter."""
    before, after = answer["before"], answer["after"]
    _line(console, _verdict(answer))
    age = answer["state_age_seconds"]
    _line(
        console,
        f"  decided by worker {answer['worker']} of {answer['host']}, on a state "
        f"{'of unknown age' if age is None else f'{age:.1f} s old'}; nothing is kept",
    )
    if answer["decided"] is not None:
        _line(console, f"  when it was real: {_outcome(answer['decided'])}")
    for note in answer["notes"]:
        _line(console, f"  {note}")
    console.print(_decisions(before, after))
    console.print(_filters(before, after))
    _passing(console, answer["passing"])


def _verdict(answer: Told) -> str:
    before, after = answer["before"], answer["after"]
    if _outcome(before) == _outcome(after):
        if (before["filters"], before["alternates"]) == (after["filters"], after["alternates"]):
            return f"No change: {_outcome(after)}"
        return f"The same hosts, found in another way: {_outcome(after)}"
    return f"Now: {_outcome(before)}. Then: {_outcome(after)}."


def _outcome(told: Told) -> str:
    if told["outcome"] != "selected":
        cause = told.get("cause") or told["outcome"]
        return str(cause).rstrip(".")
    hosts = [each["host"] for each in told["chosen"]]
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return ", ".join(hosts[:3]) + more


def _decisions(before: Told, after: Told) -> Table:
    table = Table("", "as things are", "with the changes", box=box.SIMPLE)
    for name in ("fleet", "considered", "passed"):
        table.add_row(f"hosts: {name}", str(before[name]), str(after[name]))
    rows = zip_longest(_servers(before), _servers(after), fillvalue="-")
    for number, (old, new) in enumerate(rows, 1):
        if number > _MOST_SERVERS:
            table.add_row("...", "", "")
            break
        table.add_row(f"server {number}", old, new, style=None if old == new else "bold")
    names = (_names(before), _names(after))
    table.add_row("alternates", *names)
    return table


def _servers(told: Told) -> list[str]:
    if told["outcome"] != "selected":
        return ["no host"]
    top = {each["host"]: f" (weight {each['total']:.4g})" for each in told["top"][:1]}
    return [each["host"] + top.pop(each["host"], "") for each in told["chosen"]]


def _names(told: Told) -> str:
    first: Sequence[Told] = told["alternates"][0] if told["alternates"] else []
    return ", ".join(each["host"] for each in first) or "-"


def _filters(before: Told, after: Told) -> Table:
    table = Table("hosts removed", "as things are", "with the changes", box=box.SIMPLE)
    old, new = _removals(before), _removals(after)
    order = list(dict.fromkeys([*old, *new]))
    for name in order:
        columns = (_number(old, name), _number(new, name))
        table.add_row(name, *columns, style=None if columns[0] == columns[1] else "bold")
    return table


def _removals(told: Told) -> dict[str, int]:
    """By cause how many hosts fell out, filters that removed none among them."""
    found: dict[str, int] = {f"before filters: {k}": n for k, n in told["never_evaluated"].items()}
    for each in told["filters"]:
        found[each["name"]] = each["start"] - each["end"]
        for reason, count in each["removed"].items():
            found[f"  {each['name']} {reason}"] = count
    return found


def _number(removals: Mapping[str, int], name: str) -> str:
    return str(removals[name]) if name in removals else "-"


def _passing(console: Console, passing: Told) -> None:
    for count, key, why, text in (
        ("gained", "now", "before", "Hosts that pass only with the changes"),
        ("lost", "no_longer", "after", "Hosts that no longer pass"),
    ):
        if passing[count]:
            named = _examples(passing[key][:_MOST_HOSTS], why)
            more = passing[count] - _MOST_HOSTS
            rest = f" and {more} more" if more > 0 else ""
            _line(console, f"{text}: {', '.join(named)}{rest}")


def _examples(hosts: Sequence[Told], why: str) -> Iterable[str]:
    return [f"{each['host']} ({each[why]})" for each in hosts]


def _line(console: Console, text: str) -> None:
    """One line however narrow the terminal is, which wraps it itself."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)
