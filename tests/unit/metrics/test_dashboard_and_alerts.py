"""The dashboard and the alert rules ask for what there is, and only for that."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from scheduler import errors
from scheduler.engine.record import SELECTED
from scheduler.hosts.capacity import host_states
from scheduler.metrics.catalogue import BY_NAME, CATALOGUE, Kind
from tests.builders import NOW, a_fleet
from tests.servers import programs
from tests.servers.fixtures import require

ROOT = Path(__file__).parents[3]
RULES = ROOT / "etc" / "prometheus" / "nova-scheduler.rules.yml"
RULE_TESTS = ROOT / "tests" / "data" / "prometheus" / "rules_test.yml"
DASHBOARD = ROOT / "etc" / "grafana" / "nova-scheduler.json"

SERIES = re.compile(r"\b((?:nova_scheduler|process|python)_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"')
GROUPED = re.compile(r"\b(?:by|without|ignoring|on) ?\(([^)]*)\)")
OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")
#: Labels that Prometheus or the form of the series brings.
GIVEN = {"job", "instance", "le"}
VALUES = {
    ("nova_scheduler_decisions_total", "outcome"): {SELECTED, *errors.CODES},
    ("nova_scheduler_workers", "state"): {"configured", "alive"},
    ("nova_scheduler_hosts", "state"): {*host_states(a_fleet(), NOW, 60.0)},
}


ALERTS = [
    rule
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
BOARD = json.loads(DASHBOARD.read_text(encoding="utf-8"))


def expressions_in(document):
    named = document.items() if isinstance(document, dict) else ()
    for name, value in named or enumerate(document):
        if isinstance(value, dict | list):
            yield from expressions_in(value)
        elif name in ("expr", "query", "definition") and value != "prometheus":
            yield value


SHOWN = list(expressions_in(BOARD))
ASKED = [*(rule["expr"] for rule in ALERTS), *SHOWN]


def metric_of(series):
    for suffix in OF_A_HISTOGRAM:
        name = series.removesuffix(suffix)
        if name != series and name in BY_NAME and BY_NAME[name].kind is Kind.HISTOGRAM:
            return name
    return series


@pytest.mark.parametrize("expression", ASKED)
def test_what_is_asked_for_exists(expression):
    found = SERIES.findall(expression)
    assert found
    known = set(GIVEN)
    for series, matchers in found:
        name = metric_of(series)
        assert name in BY_NAME, name
        if BY_NAME[name].kind is Kind.HISTOGRAM:
            assert series != name, "a histogram has no series of its own name"
        known |= set(BY_NAME[name].labels)
        for label, value in MATCHER.findall(matchers):
            assert label in {*BY_NAME[name].labels, *GIVEN}, label
            assert value in VALUES.get((name, label), {value}), value
        assert MATCHER.sub("", matchers).strip(", ") == ""
    for labels in GROUPED.findall(expression):
        assert {label.strip() for label in labels.split(",")} <= known
    for opening, closing in ("()", "[]", "{}"):
        assert expression.count(opening) == expression.count(closing)


def test_counters_are_only_asked_how_fast_they_grow_and_every_metric_is_shown():
    for expression in ASKED:
        for series, _matchers in SERIES.findall(expression):
            before = expression[: expression.index(series)]
            is_gauge = BY_NAME[metric_of(series)].kind.is_gauge
            assert is_gauge or re.search(r"(rate|increase)\($", before), expression
    shown = {metric_of(name) for text in SHOWN for name, _matchers in SERIES.findall(text)}
    assert {metric.name for metric in CATALOGUE} - shown == set()


def test_form_of_the_dashboard():
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert panel["type"] == "row" or (panel["description"] and panel["targets"]), panel["title"]
    names = {each["name"] for each in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(panels)))
    assert used - {"__rate_interval"} == names


def test_form_of_the_rules_and_that_each_has_a_test():
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names)
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), rule["alert"]
        notes = rule["annotations"]
        assert notes.keys() == {"summary", "description", "runbook_url"}, rule["alert"]
        assert notes["runbook_url"] == f"runbooks.md#{rule['alert'].lower()}"
    well, unwell = yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]
    assert [each["alertname"] for each in well["alert_rule_test"]] == names
    (expected,) = unwell["promql_expr_test"][0]["exp_samples"]
    assert expected["value"] == len(names)


@pytest.mark.parametrize(
    "arguments", [("check", "rules", str(RULES)), ("test", "rules", str(RULE_TESTS))]
)
def test_prometheus_agrees(arguments):
    require((programs.PROMTOOL,))
    done = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
