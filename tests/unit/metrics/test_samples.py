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

NOBODY = 2**22 + 1
"""No process has this number on Linux."""


class Folder:
    """The files of several workers, as this process sees them at *now*."""

    def __init__(self, path):
        self.path = path
        self.now = 1000.0
        self.snapshots = Snapshots(path, lambda: self.now)

    def write(self, number, pid=None):
        """Have this process tell, or leave what a process *pid* has told."""
        samples = Samples()
        samples.set(catalogue.PLACED, number)
        samples.set(catalogue.IN_FLIGHT, number)
        if pid is None:
            self.snapshots.write(samples)
            return
        plain = {"written_at": 1000.0, **samples.to_plain()}
        (self.path / f"metrics-{pid}.json").write_text(json.dumps(plain), encoding="utf-8")

    def summed(self):
        """Placed, in flight, and who is alive."""
        samples, alive = self.snapshots.together()
        both = catalogue.PLACED, catalogue.IN_FLIGHT
        placed, in_flight = (samples.values.get((each.name, ()), 0) for each in both)
        return placed, in_flight, sorted(alive)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_those_that_live(folder):
    assert folder.summed() == (0, 0, [])
    for number in (1, 2):
        folder.write(number)
    assert folder.summed() == (2, 2, [os.getpid()])
    with subprocess.Popen(["sleep", "60"]) as other:
        folder.write(10, other.pid)
        assert folder.summed() == (12, 12, sorted([os.getpid(), other.pid]))
        other.kill()
    folder.now += FRESH_SECONDS + 1
    assert folder.summed() == (12, 0, []), "those that say nothing any more count as dead"


def test_the_dead_are_put_together(folder):
    # A worker may get the number of a dead one.
    for round_of_deaths in (1, 2):
        for pid in (NOBODY, NOBODY + 1, os.getpid()):
            folder.write(10, pid)
        assert folder.summed()[0] == 30 * round_of_deaths
        folder.snapshots.retire()
        assert not list(folder.path.glob("metrics-*.json"))
        assert folder.summed() == (30 * round_of_deaths, 0, [])
    folder.write(1)
    assert folder.summed() == (61, 1, [os.getpid()])
