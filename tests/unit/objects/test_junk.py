"""Whatever a sender puts anywhere: it is read, or refused by an error of our own."""

import copy

import pytest

from scheduler import errors, objects
from tests.unit.objects import wire_samples

JUNK = [None, True, -1, 1.5, "", "x", [], [None], [[]], {}, {"x": {}}, {"nova_object.name": 1}]


def _places(value, path=()):
    """The path of every value inside *value*."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))


def _replaced(value, path, junk):
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = junk
    return changed


def _outcome(read, *args):
    try:
        read(*args)
    except errors.NovaException as exc:
        return type(exc).__name__
    return "read"


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_in_envelopes(junk):
    request = wire_samples.load("select_destinations-rich.request")["args"]["spec_obj"]
    outcomes = set()
    for path in _places(request):
        outcomes.add(_outcome(objects.from_primitive, _replaced(request, path, junk)))
    assert "InvalidRequest" in outcomes


@pytest.mark.parametrize("junk", JUNK, ids=repr)
@pytest.mark.parametrize(
    "name",
    [
        "derived-liberty-select_destinations-v4.0-reschedule.request",
        "select_destinations-v4.0-rich.request",
    ],
)
def test_junk_in_legacy_dicts(name, junk):
    args = wire_samples.load(name)["args"]
    args["request_spec"]["instance_properties"]["numa_topology"] = {
        "cells": [{"id": 0, "cpus": "0,1", "mem": {"total": 1}}]
    }
    args["request_spec"]["instance_properties"]["pci_requests"] = [{"count": 1, "spec": [{}]}]
    args["request_spec"]["image"]["properties"]["hw_numa_cpus.0"] = "0-1"
    args = wire_samples.decoded(args)
    outcomes = set()
    for path in _places(args):
        if len(path) > 1:
            changed = _replaced(args, path, junk)
            given = (changed["request_spec"], changed["filter_properties"])
            outcomes.add(_outcome(objects.RequestSpec.from_primitives, *given))
    assert {"read", "InvalidRequest"} <= outcomes
