"""A few inputs of every kind, always the same; ``make fuzz`` tries out a million."""

import pytest

from tests.fuzz import targets, verdicts
from tests.fuzz.targets import TARGETS, tried_out
from tests.fuzz.world import NOVA, OWN, a_world

FEW_CHANGES = 100
"""Of all changes of one field."""


@pytest.fixture(autouse=True)
def any_machine(monkeypatch):
    """Allow an input ten times the processor time; `make fuzz` looks at the second."""
    monkeypatch.setenv(verdicts.MOST_SECONDS_VARIABLE, str(10 * verdicts.MOST_SECONDS))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One scheduler for all of the inputs, which decides from memory."""
    with a_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.mark.parametrize(
    "target", [each for each in TARGETS if each.layout == OWN], ids=lambda each: each.name
)
def test_no_input_does_harm(world, target):
    tally = tried_out(world, target)
    assert tally.violations == {}
    assert len(tally.kinds) > 1


def test_no_row_of_novas_does_harm(tmp_path):
    with a_world(tmp_path, NOVA) as world:
        tally = tried_out(world, targets.named("rows of Nova's"))
    assert tally.violations == {}
    assert tally.kinds["accepted"] >= 5


def test_a_million_inputs_are_listed():
    assert sum(targets.listed().values()) >= 1_000_000


def test_what_is_refused_is_named(world):
    tally = targets.changed_fields(world, FEW_CHANGES)
    assert tally.violations == {}
    assert tally.kinds["InvalidRequest"] > 10


MENDED = {
    "an aggregate without an id": (
        {"method": "delete_aggregate", "version": "4.1", "args": {"aggregate": {
            "nova_object.name": "Aggregate", "nova_object.namespace": "nova",
            "nova_object.version": "1.3", "nova_object.data": {}}}},
        "aggregate.id"),
    "a caller that waits for a list": (
        {"method": "ping", "namespace": "baseapi", "args": {"arg": 1}, "_timeout": [1]},
        "_timeout"),
    "hints of an old request in a list": (
        {"method": "select_hosts", "version": "2.6", "args": {
            "request_spec": {"instance_uuids": ["u"]},
            "filter_properties": {"scheduler_hints": ["x"]}}},
        "scheduler_hints"),
    "an old request for far too many servers": (
        {"method": "run_instance", "version": "2.9", "args": {
            "request_spec": {"instance_uuids": ["u"] * 10_001}, "admin_password": None,
            "injected_files": None, "requested_networks": None, "is_first_time": True,
            "filter_properties": {}}},
        "request_spec.instance_uuids"),
    "an old resize of far too many servers": (
        {"method": "prep_resize", "version": "2.9", "args": {
            "image": {}, "request_spec": {"instance_uuids": ["u"] * 10_001},
            "instance": {"uuid": "u"},
            "filter_properties": {}, "instance_type": {}, "reservations": None}},
        "request_spec.instance_uuids"),
    "an old request that holds far too much": (
        {"method": "select_hosts", "version": "2.6", "args": {
            "request_spec": {"instance_uuids": ["u"]},
            "filter_properties": {"ignore_hosts": ["x"] * 10_001}}},
        "ignore_hosts"),
    "an old build that holds far too much": (
        {"method": "run_instance", "version": "2.9", "args": {
            "request_spec": {"instance_uuids": ["u"]}, "admin_password": None,
            "injected_files": None, "requested_networks": None, "is_first_time": True,
            "filter_properties": {"scheduler_hints": {"query": ["x" * 70_000]}}}},
        "scheduler_hints.query"),
    "an object of no class, deep inside": (
        {"method": "ping", "namespace": "baseapi", "args": {
            "arg": [{"inner": {"nova_object.name": "Nothing"}}]}},
        "arg[0].inner"),
    "a profile whose aggregates are dicts": (
        {"method": "what_if", "namespace": "introspection", "args": {
            **targets.samples.what_if()["args"], "add_hosts": [
                {"like": "cmp1", "aggregates": [{}]}]}},
        "aggregates"),
}  # fmt: skip


def test_a_what_if_may_be_given_any_time(world):
    message = targets.samples.what_if()
    message["args"]["max_seconds"] = 10**400
    assert world.serve(message).failure is None


@pytest.mark.parametrize("what", MENDED)
def test_what_once_was_a_fault_is_refused(world, what):
    message, field = MENDED[what]
    failure = world.serve(message).failure
    assert failure is not None
    assert failure["kwargs"]["code"] == 400
    assert field in failure["message"]


def test_a_size_beyond_any_database_is_refused(world):
    root_gb = targets.with_spec("flavor", targets.DATA, "root_gb")
    verdict = root_gb(world, b"1" + b"0" * 30)
    assert (verdict.kind, verdict.violation) == ("InvalidRequest", None)
