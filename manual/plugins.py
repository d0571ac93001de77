"""Pages of the filters and weighers, from their classes and from examples that are decided."""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg

from manual import trials
from scheduler import conf as project_options
from scheduler.filters import registry as filters
from scheduler.filters.base import BaseHostFilter, HostFilter
from scheduler.weights import registry as weighers
from scheduler.weights.base import BaseHostWeigher, HostWeigher

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
FILTERS, WEIGHERS = Path("docs/filters"), Path("docs/weighers")
MADE = "<!-- Made by `make manual` from the class and from docs/examples/{}.yaml. -->\n"
WIDTH = 110
#: Hosts of the examples: the one that passes or is better, and the other.
PASSES, FAILS = "cmp-1", "cmp-2"
#: Attributes of a host that a filter or weigher may read (docs/api-stability.md).
ATTRIBUTES = (
    *("aggregates", "cell_uuid", "cpu_allocation_ratio", "cpu_info", "disk_allocation_ratio"),
    *("failed_builds", "free_disk_mb", "free_ram_mb", "host_ip", "hypervisor_type"),
    *("hypervisor_version", "metrics", "nodename", "num_instances", "num_io_ops"),
    *("numa_topology", "pci_stats", "ram_allocation_ratio", "service", "stats"),
    *("supported_instances", "total_usable_disk_gb", "total_usable_ram_mb", "vcpus_total"),
    *("vcpus_used", "instances"),
)
#: What every part inherits says nothing of what it reads itself.
BASES = (object, BaseHostFilter, HostFilter, BaseHostWeigher, HostWeigher)
#: Groups whose options filters and weighers read in their constructors.
GROUPS = (
    *("DEFAULT", "scheduler", "filter_scheduler", "metrics", "trusted_computing", "compute", "pci"),
)
FILTER_INDEX = (
    "# Filters",
    "A filter says for each host whether it may take the server. Filters run in the order of "
    "`[filter_scheduler] enabled_filters`. Each page says what the filter reads, its options "
    "and its reasons, and shows an example. Hosts of the examples have 8 vCPUs, 16384 MB of memory "
    "and 100 GB of disk, and differ by what is shown.",
)
WEIGHER_INDEX = (
    "# Weighers",
    "A weigher gives each host a number. Its numbers are normalised to 0 to 1, multiplied, and "
    "added to those of the other weighers. The host with the highest sum is chosen. "
    "`[filter_scheduler] weight_classes` lists the weighers that run.",
)


def pages() -> Iterator[tuple[Path, str]]:
    """Every page with its path."""
    for folder, head, classes, page in (
        (FILTERS, FILTER_INDEX, filters.all_filters(), _filter_page),
        (WEIGHERS, WEIGHER_INDEX, weighers.all_weighers(), _weigher_page),
    ):
        known = yaml.safe_load((EXAMPLES / f"{folder.name}.yaml").read_text(encoding="utf-8"))
        made = MADE.format(folder.name)
        by_name = sorted(classes, key=lambda cls: cls.__name__)
        for cls in by_name:
            yield folder / f"{cls.__name__}.md", f"{made}{page(cls, known[cls.__name__])}"
        yield folder / "index.md", f"{made}{_index(head, by_name, known)}"


def _index(
    head: tuple[str, str], classes: Iterable[type], known: Mapping[str, Mapping[str, Any]]
) -> str:
    title, about = head
    lines = []
    for cls in classes:
        said = _about(cls, known[cls.__name__])
        link = f"[{cls.__name__}]({cls.__name__}.md)"
        lines.append(_wrapped_item(f"* {link}: {said[:1].lower()}{said[1:]}"))
    names = [cls.__name__ for cls in classes]
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    return "\n".join([title, "", _wrapped(about), "", *lines, "", tree, ""])


def _wrapped_item(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _about(cls: type, example: Mapping[str, Any]) -> str:
    return str(example.get("about") or f"{_first_sentence(cls.__doc__ or '')}.")


def _filter_page(cls: type[HostFilter], example: Mapping[str, Any]) -> str:
    runs = "the first instance" if cls.run_filter_once_per_request else "every instance"
    reasons = [f"* `{each.code}`: {each.text}." for each in cls.reasons]
    rebuild = "" if cls.RUN_ON_REBUILD is True else "not "
    return _page(
        cls,
        example,
        f"Enable it with `{cls.__name__}` in `[filter_scheduler] enabled_filters`. It is asked for "
        f"{runs} of a request. It is {rebuild}asked when a server is rebuilt in place.",
        [("Reasons", "\n".join(map(_wrapped_item, reasons)) or "It removes no host.")],
        _filter_example(cls.__name__, example),
    )


def _weigher_page(cls: type[HostWeigher], example: Mapping[str, Any]) -> str:
    module = cls.__module__.rpartition(".")[2]
    path = f"nova.scheduler.weights.{module}.{cls.__name__}"
    return _page(
        cls,
        example,
        f"Enable it with `{path}` in `[filter_scheduler] weight_classes`.",
        [],
        _weigher_example(path, example),
    )


def _page(
    cls: type,
    example: Mapping[str, Any],
    enabling: str,
    more: list[tuple[str, str]],
    shown: str,
) -> str:
    note = _wrapped(example["note"]) if "note" in example else ""
    head = f"# {cls.__name__}\n\n{_wrapped(_about(cls, example))}\n"
    sections = [("Reads", _reads(cls, example)), ("Options", _options(cls, example)), *more]
    body = "".join(f"\n## {title}\n\n{text}\n" for title, text in sections if text)
    note = f"{note}\n\n" if note else ""
    return f"{head}\n{_wrapped(enabling)}\n{body}\n## Example\n\n{note}{shown}"


def _reads(cls: type, example: Mapping[str, Any]) -> str:
    host = example.get("host") or ", ".join(f"`{each}`" for each in _attributes(cls)) or "nothing"
    request = example.get("reads", "nothing.")
    lines = (f"* of the request: {request}", f"* of the host: {host}.")
    return "\n".join(map(_wrapped_item, lines))


def _attributes(cls: type) -> list[str]:
    source = _source(cls)
    return [name for name in ATTRIBUTES if re.search(rf"[.\"']{name}\b", source)]


def _source(cls: type) -> str:
    own = [base for base in cls.__mro__ if base not in BASES]
    return "\n".join(map(inspect.getsource, own))


def _options(cls: type, example: Mapping[str, Any]) -> str:
    lines = []
    for group, option in _known_options():
        name = f"{group}.{option.dest}"
        if name in example.get("options", ()) or _is_read(_source(cls), group, option.dest):
            help_text = _first_sentence(option.help or "")
            lines.append(f"* `[{group}] {option.dest}` ({_default(option)}): {help_text}.")
    return "\n".join(map(_wrapped_item, lines))


def _is_read(source: str, group: str, name: str) -> bool:
    if re.search(rf"conf\.{group}\)", source):  # the whole group is handed on
        return True
    if re.search(rf"_option = \"{name}\"", source):
        return group == "filter_scheduler"
    if group == "DEFAULT":
        return re.search(rf"(conf\.|[\"']){name}\b", source) is not None
    named = re.search(rf"conf\.{group}\b", source) is not None
    return named and re.search(rf"(options|conf\.{group})\.{name}\b", source) is not None


def _known_options() -> Iterator[tuple[str, cfg.Opt]]:
    for group, options in project_options.list_opts():
        name = group if isinstance(group, str) else group.name
        if name in GROUPS:
            yield from ((name, option) for option in options)


def _default(option: cfg.Opt) -> str:
    return "unset" if option.default in (None, [], "") else f"default `{option.default}`"


def _filter_example(name: str, example: Mapping[str, Any]) -> str:
    hosts = {each: example[each] for each in (PASSES, FAILS) if each in example}
    parts = {"enabled_filters": [name], "weight_classes": []}
    shown = _given(example, hosts)
    if PASSES in hosts:
        both = trials.explain(example, hosts, **parts)
        assert [each["host"] for each in both["chosen"]] == [PASSES], (name, both["cause"])
        shown += f"With these hosts `explain` says:\n\n{_text(both['cause'])}\n"
    if FAILS in hosts:
        alone = trials.explain(example, {FAILS: hosts[FAILS]}, **parts)
        assert not alone["chosen"], name
        shown += f"With {FAILS} alone it says:\n\n{_text(alone['cause'])}"
    return shown.rstrip("\n") + "\n"


def _weigher_example(path: str, example: Mapping[str, Any]) -> str:
    hosts = {each: example[each] for each in (PASSES, FAILS)}
    record = trials.explain(example, hosts, enabled_filters=[], weight_classes=[path])
    assert [each["host"] for each in record["chosen"]] == [PASSES], (path, record["cause"])
    numbers = ("raw", "normalised", "multiplier", "weighted")
    rows = []
    for each in record["top"]:
        values = [_number(each["weighers"][0][name]) for name in numbers]
        rows.append(f"| {each['host']} | {' | '.join(values)} |\n")
    head = f"| host | {' | '.join(numbers)} |\n| --- |{' ---: |' * len(numbers)}\n"
    return (
        f"{_given(example, hosts)}The weights, and what `explain` says:\n\n{head}{''.join(rows)}\n"
        f"{_text(record['cause'])}"
    )


def _number(value: float) -> str:
    return f"{value + 0.0:,.4f}".rstrip("0").rstrip(".")


def _given(example: Mapping[str, Any], hosts: Mapping[str, Any]) -> str:
    given = {key: example[key] for key in ("config", "request") if key in example}
    text = yaml.safe_dump(
        {**given, "hosts": dict(hosts)}, sort_keys=False, width=WIDTH - 10, default_flow_style=None
    )
    return f"```yaml\n{text}```\n\n"


def _text(content: str) -> str:
    return f"```text\n{textwrap.fill(content, WIDTH, break_on_hyphens=False)}\n```\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_on_hyphens=False)


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".").replace("``", "`")
