"""The report of a replay: tables of measures, sentences, and one static page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler.replay import pages
from scheduler.replay.measures import RESOURCES
from scheduler.replay.run import DAY, HOUR
from scheduler.replay.sizing import MOST_TIMES

_SHARES: Final = (
    ("Allocated share", "allocated_share"),
    ("Packing density", "packing_density"),
    ("Stranded share", "stranded_share"),
    ("Fragment rate", "fragment_rate"),
)
SIZES: Final = (
    ("compact", "Smallest fleet that holds this workload", "hosts"),
    ("inflate", "Largest workload that this fleet holds", "times"),
)

Document = Mapping[str, Any]


def to_html(document: Document) -> str:
    results: Mapping[str, Document] = document["configurations"]
    return pages.page(
        "replay.html",
        **document,
        heads=["", *measure_heads(results)],
        measures=list(measure_rows(results)),
        charts=list(charts(results)),
        time_unit=_time_unit(results)[0],
        sizes=[(*size, document[size[0]]) for size in SIZES if size[0] in document],
        size_text=size_text,
        sentences=list(map(difference_sentence, document["differences"])),
        failures=list(_failures(results)),
    )


def size_text(key: str, found: float) -> str:
    """A number of one of SIZES, which may be more where the search ended at its bound."""
    return f"{'at least ' * (key == 'inflate' and found >= MOST_TIMES)}{found:g}"


def _measures(sample: Document, resources: Sequence[str]) -> dict[str, float]:
    found = {f"{title}, {of}": sample[name][of] for title, name in _SHARES for of in resources}
    return {**found, "Empty hosts": sample["empty_host_share"]}


def measure_heads(results: Mapping[str, Document]) -> list[str]:
    """The columns of the table of measures, without the first."""
    return [f"{name}, {when}" for name in results for when in ("mean", "end")]


def measure_rows(results: Mapping[str, Document]) -> Iterator[list[str]]:
    """The table of measures: per row its name, then mean and end of each configuration."""
    has_disk = any(each["end"]["allocated_share"]["disk"] for each in results.values())
    samples = [each[when] for each in results.values() for when in ("mean", "end")]
    columns = [_measures(each, RESOURCES[: 2 + has_disk]) for each in samples]
    for title in columns[0]:
        yield [title, *(_percent(each[title]) for each in columns)]
    for title, name in (("Requests", "requests"), ("of these refused", "requests_refused")):
        yield [title, *(text for each in results.values() for text in ("", f"{each[name]:,}"))]


def _percent(value: float) -> str:
    return f"{value * 100:.2f} %"


def _time_unit(results: Mapping[str, Document]) -> tuple[str, float]:
    """The unit of time in charts, and its seconds: days, or hours of what takes less than two."""
    lasts = max(each["end"]["at"] for each in results.values())
    return ("days", DAY) if lasts >= 2 * DAY else ("hours", HOUR)


def charts(results: Mapping[str, Document]) -> Iterator[pages.Chart]:
    _unit, seconds = _time_unit(results)
    series = {
        name: [
            (each["at"] / seconds, _measures(each, RESOURCES[:2]) | {"Servers": each["servers"]})
            for each in result["series"]
        ]
        for name, result in results.items()
    }
    for title in next(iter(series.values()))[0][1]:
        lines = {name: [(at, found[title]) for at, found in each] for name, each in series.items()}
        yield pages.line_chart(title, lines, is_share=title != "Servers")


def difference_sentence(each: Document) -> str:
    first, other = each["between"]
    refused = each["refused_only_by"]
    text = (
        f"{each['elsewhere']:,} of {each['requests']:,} requests went elsewhere with {other} than "
        f"with {first}; {refused[first]:,} were refused only by {first}, {refused[other]:,} only "
        f"by {other}."
    )
    if (begin := each["first"]) is None:
        return text
    return (
        f"{text} First: {begin['request']} ({begin['servers']} × {begin['flavor']}). "
        f"{first}: {begin['why'][first]} {other}: {begin['why'][other]}"
    )


def _failures(results: Mapping[str, Document]) -> Iterator[list[str]]:
    """Per flavor its servers, and those refused under each configuration."""
    rates = [each["failure_rate_by_flavor"] for each in results.values()]
    for flavor, counts in rates[0].items():
        found = [each[flavor] for each in rates]
        row = [f"{each['servers_refused']:,} ({_percent(each['failure_rate'])})" for each in found]
        yield [flavor, f"{counts['servers']:,}", *row]
