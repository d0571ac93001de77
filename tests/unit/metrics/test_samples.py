"""How the values of several workers become one, and how Prometheus reads them."""

import json
import os
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from scheduler.metrics import catalogue
from scheduler.metrics.catalogue import CATALOGUE, SECONDS_BUCKETS, Kind
from scheduler.metrics.samples import FRESH_SECONDS, Samples, Snapshots, render

FORMER = [each for each in CATALOGUE if each.former]
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def everything(read_at=float("-inf")):
    """A value of every metric, with labels that need quoting."""
    samples = Samples(read_at=read_at)
    for metric in CATALOGUE:
        labels = tuple(f'{label} "x"\n\\' for label in metric.labels)
        value = 3 if metric.kind is not Kind.HISTOGRAM else [*[1] * (len(SECONDS_BUCKETS) + 1), 2.5]
        samples.values[metric.name, labels] = value
    return samples


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (catalogue.PLACED, 6),
        (catalogue.DECISION_SECONDS, [6, 60]),
        (catalogue.IN_FLIGHT, 6),
        (catalogue.STATE_AGE, 3),
        (catalogue.CONSUMER_UP, 1),
        (catalogue.INSTANCES, 2),
    ],
)
def test_three_workers(metric, expected):
    together = Samples()
    for value, read_at in ((1, 10.0), (2, 30.0), (3, 20.0)):
        told = [value, 10 * value] if metric.kind is Kind.HISTOGRAM else value
        together.take(Samples({(metric.name, ()): told}, read_at=read_at), is_alive=True)
    assert together.values == {(metric.name, ()): expected}


def test_of_the_dead_only_what_they_counted_is_left():
    gone, metrics = (
        ("nova_scheduler_of_another_release", ()),
        (catalogue.PLACED, catalogue.IN_FLIGHT),
    )
    together = Samples()
    for value, read_at, is_alive in ((2.0, 90.0, False), (1.0, 10.0, True)):
        values = {(each.name, ()): value for each in metrics}
        together.take(Samples({**values, gone: value}, read_at=read_at), is_alive=is_alive)
    assert [together.values.pop((each.name, ())) for each in metrics] == [3, 1]
    assert (together.values, together.read_at) == ({}, 10.0)


@pytest.mark.parametrize("read_at", [float("-inf"), 7.5])
def test_plain_and_back(read_at):
    samples = everything(read_at)
    found = Samples.from_plain(json.loads(json.dumps(samples.to_plain())))
    assert (found.values, found.read_at) == (samples.values, read_at)


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS, "text/html"])
def test_every_metric_is_rendered_in_every_format(accept):
    body, content_type = render(everything(), accept)
    is_open = accept == OPENMETRICS
    assert content_type.startswith("application/openmetrics-text" if is_open else "text/plain")
    parse = (
        openmetrics.text_string_to_metric_families if is_open else text_string_to_metric_families
    )
    found = {family.name: family for family in parse(body.decode())}
    named = [each for metric in CATALOGUE for each in (metric.name, metric.former) if each]
    assert list(found) == [name.removesuffix("_total") for name in named]
    for metric in (*CATALOGUE, *(replace(each, name=each.former) for each in FORMER)):
        family = found[metric.name.removesuffix("_total")]
        wanted = metric.kind.value if not metric.kind.is_gauge else "gauge"
        assert (family.type, family.documentation) == (wanted, metric.help)
        labels = {name: f'{name} "x"\n\\' for name in metric.labels}
        assert all(labels.items() <= sample.labels.items() for sample in family.samples)
    seconds = found[catalogue.DECISION_SECONDS.name].samples
    buckets = [(float(s.labels["le"]), s.value) for s in seconds if s.name.endswith("_bucket")]
    bounds = [*SECONDS_BUCKETS, float("inf")]
    assert buckets == [(bound, number + 1) for number, bound in enumerate(bounds)]
    assert len(FORMER) == 7
    assert render(Samples(), accept)[0] in (b"", b"# EOF\n")


def test_names():
    for metric in CATALOGUE:
        assert metric.name.startswith(("nova_scheduler_", "process_", "python_"))
        assert metric.kind is not Kind.HISTOGRAM or metric.name.endswith("_duration_seconds")
        assert metric.name.endswith("_total") is (metric.kind is Kind.COUNTER), metric.name
        assert metric.help.endswith("."), metric.name
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)


# --- files of several workers, some of them dead -------------------------------------------


def told(snapshots, number):
    """Have a worker tell that it has placed so many, and has as many in hand."""
    samples = Samples()
    samples.set(catalogue.PLACED, number)
    samples.set(catalogue.IN_FLIGHT, number)
    snapshots.write(samples)


def summed(snapshots):
    """Placed, in flight, and how many are alive."""
    samples, alive = snapshots.together()
    both = catalogue.PLACED, catalogue.IN_FLIGHT
    placed, in_flight = (samples.values.get((each.name, ()), 0) for each in both)
    return placed, in_flight, alive


def test_those_that_live(tmp_path, monkeypatch):
    now = 1000.0
    first, second = (Snapshots(tmp_path, place, lambda: now) for place in range(2))
    assert summed(first) == (0, 0, 0)
    for number in (1, 2):
        told(first, number)
    assert summed(second) == (2, 2, 1)
    with subprocess.Popen(["sleep", "60"]) as other, monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: other.pid)
        told(second, 10)
        assert summed(first) == (12, 12, 2)
        other.kill()
    assert summed(first) == (12, 2, 1)
    now += FRESH_SECONDS + 1
    assert summed(first) == (12, 0, 0), "those that say nothing any more count as dead"


def test_who_replaces_a_dead_worker_goes_on_from_what_it_had_counted(tmp_path):
    for already in (0, 10, 20):
        snapshots = Snapshots(tmp_path, 0)
        for number in (4, 10):
            told(snapshots, number)
            assert summed(snapshots) == (already + number, number, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics-0.json"]


def test_workers_without_a_place_have_files_of_their_own(tmp_path, monkeypatch):
    for process in (os.getpid(), os.getppid()):
        monkeypatch.setattr(os, "getpid", lambda its=process: its)
        told(Snapshots(tmp_path, None), 3)
    assert summed(Snapshots(tmp_path, None)) == (6, 6, 2)
