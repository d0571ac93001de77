"""The report of a replay as one static page: no scripts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from scheduler.replay.charts import line_chart
from scheduler.replay.run import DAY

_STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2330;--dim:#5c6675;--line:#dfe3ea;--c0:#2463c4;
--c1:#c2410c;--c2:#15803d;--c3:#9333ea;--c4:#a16207;--c5:#0e7490}
@media(prefers-color-scheme:dark){:root{--bg:#14181f;--fg:#e6e9ef;--dim:#9aa5b5;--line:#303846;
--c0:#74a7ff;--c1:#ff9b66;--c2:#6cd391;--c3:#cf9bff;--c4:#e5c158;--c5:#5fd0e5}}
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;max-width:1080px;
margin:2rem auto;padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
p,li{max-width:52rem;overflow-wrap:anywhere}.dim,figcaption{color:var(--dim)}table{border-collapse:collapse}
.wide{overflow-x:auto}td,th{padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);
text-align:right;white-space:nowrap}td:first-child,th:first-child{text-align:left}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(320px,1fr));gap:1rem}
figure{margin:0}svg{width:100%;height:auto}svg text{font-size:11px;fill:var(--dim)}
.grid{stroke:var(--line)}polyline{fill:none;stroke-width:1.6}.key{margin-right:1.2rem}
.key i{display:inline-block;width:1.1em;height:.25em;margin-right:.4em;vertical-align:middle}
"""
_COLOURS: Final = "".join(
    f".c{n}{{stroke:var(--c{n})}}.b{n}{{background:var(--c{n})}}" for n in range(6)
)
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
_MEANING: Final = (
    "<p class=dim>Allocated share: of the capacity, times its allocation ratio. Packing density: "
    "the same on hosts that are not empty. Stranded share: capacity left when hosts are filled "
    "with the day's own mix of servers until none fits. Fragment rate: of what is free, the share "
    "on hosts where the next server of the mix does not fit.</p>"
)

Document = Mapping[str, Any]
Pick = Callable[[Document], float]


def to_html(document: Document) -> str:
    """The page."""
    results: Mapping[str, Document] = document["configurations"]
    body = "".join(
        [
            *_about(document),
            "<h2>Measures</h2>",
            _measures(results),
            _MEANING,
            "<h2>Over time</h2><p>",
            *legend(results),
            "<span class=dim>x: days</span></p><div class=charts>",
            *charts(results),
            "</div>",
            *_sizes(document),
            *_differences(document["differences"]),
            "<h2>Allocation failure rate by flavor</h2>",
            _failures(results),
            *_refusals(results),
        ]
    )
    return page(document["title"], body)


def page(title: str, body: str) -> str:
    """A page with our style; *body* is HTML."""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}{_COLOURS}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _about(document: Document) -> Iterator[str]:
    yield f"<p>Workload: {escape(document['workload'])}.<br>Fleet: {escape(document['fleet'])}."
    yield "</p><ul>"
    for name, settings in document["settings"].items():
        yield f"<li><b>{escape(name)}</b>: {escape(', '.join(settings) or 'as configured')}</li>"
    yield "</ul>"
    for note in document["notes"]:
        yield f"<p class=dim>{escape(note)}</p>"


def table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    lines = ["".join(f"<th>{escape(each)}</th>" for each in heads)]
    lines += ["".join(f"<td>{escape(each)}</td>" for each in row) for row in rows]
    return f"<div class=wide><table><tr>{'</tr><tr>'.join(lines)}</tr></table></div>"


def _picks(resources: Sequence[str]) -> Iterator[tuple[str, Pick]]:
    """The measures of *resources*, each with a function that takes it out of a sample."""
    for title, name in _SHARES:
        for of in resources:
            yield f"{title}, {of}", _picked(name, of)
    yield "Empty hosts", lambda sample: sample["empty_host_share"]


def _picked(name: str, of: str) -> Pick:
    return lambda sample: sample[name][of]


def measure_rows(results: Mapping[str, Document]) -> Iterator[list[str]]:
    """The table of measures: per row its name, then mean and end of each configuration."""
    has_disk = any(each["end"]["allocated_share"]["disk"] for each in results.values())
    resources = ("cores", "memory", "disk") if has_disk else ("cores", "memory")
    for title, pick in _picks(resources):
        pairs = [(pick(each["mean"]), pick(each["end"])) for each in results.values()]
        yield [title, *(percent(value) for pair in pairs for value in pair)]
    for title, name in (("Requests", "requests"), ("of these refused", "requests_refused")):
        yield [title, *(text for each in results.values() for text in ("", f"{each[name]:,}"))]


def percent(value: float) -> str:
    """A share as text."""
    return f"{value * 100:.2f} %"


def _measures(results: Mapping[str, Document]) -> str:
    heads = ["", *(f"{name}, {when}" for name in results for when in ("mean", "end"))]
    return table(heads, measure_rows(results))


def legend(results: Iterable[str]) -> Iterator[str]:
    """The names and colours of the lines of charts."""
    for number, name in enumerate(results):
        yield f"<span class=key><i class=b{number % 6}></i>{escape(name)}</span>"


def charts(results: Mapping[str, Document]) -> Iterator[str]:
    """The charts of measures over time; x is in days."""
    for title, pick in _picks(("cores", "memory")):
        yield line_chart(title, _lines(results, pick))
    yield line_chart("Servers", _lines(results, lambda each: each["servers"]), is_share=False)


def _lines(results: Mapping[str, Document], pick: Pick) -> dict[str, list[tuple[float, float]]]:
    return {
        name: [(each["at"] / DAY, pick(each)) for each in result["series"]]
        for name, result in results.items()
    }


def _sizes(document: Document) -> Iterator[str]:
    for key, title, unit in SIZES:
        if (found := document.get(key)) is not None:
            trials = ", ".join(f"{each:g}" for each in found["trials"])
            yield f"<h2>{title}</h2><p>{found['median']:g} {unit} (median; {found['least']:g} to "
            yield f"{found['most']:g}). Trials: {trials}.</p>"


def difference_sentence(each: Document) -> str:
    """One comparison in words."""
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
        f"{first}: {begin[first]} {other}: {begin[other]}"
    )


def _differences(differences: Sequence[Document]) -> Iterator[str]:
    if differences:
        yield "<h2>Request by request</h2>"
    for each in differences:
        yield f"<p>{escape(difference_sentence(each))}</p>"


def _failures(results: Mapping[str, Document]) -> str:
    first = next(iter(results.values()))["failure_rate_by_flavor"]
    rows = []
    for flavor, counts in first.items():
        rates = (each["failure_rate_by_flavor"][flavor] for each in results.values())
        row = [f"{each['servers_refused']:,} ({percent(each['failure_rate'])})" for each in rates]
        rows.append([flavor, f"{counts['servers']:,}", *row])
    return table(["Flavor", "Servers", *results], rows)


def _refusals(results: Mapping[str, Document]) -> Iterator[str]:
    for name, result in results.items():
        items = [
            f"<li>{escape(each['request'])}, day {each['at'] / DAY:.2f}, {each['servers']} servers "
            f"of {escape(each['flavor'])}: {escape(each['because'])}</li>"
            for each in result["worst_refusals"]
        ]
        if items:
            yield f"<h2>Worst refusals: {escape(name)}</h2><ul>{''.join(items)}</ul>"
