"""The methods by which a worker can be asked."""

import contextlib
import pathlib
from types import SimpleNamespace

import pytest

from scheduler import errors
from scheduler.daemon.worker_table import WorkerTable
from scheduler.introspection import endpoint
from scheduler.introspection.endpoint import METHODS, IntrospectionEndpoint
from scheduler.introspection.state import Subject
from tests.builders import a_conf

DOCUMENTED = pathlib.Path(__file__).parents[3] / "docs" / "rpc.md"
MANAGER = SimpleNamespace(driver=object())


def test_a_worker_says_who_it_is_and_refuses_what_it_does_not_know():
    asked = IntrospectionEndpoint(Subject(a_conf(), MANAGER, 1, 3))
    answer = asked.worker({})
    assert (answer["host"], answer["worker"], answer["workers"]) == (a_conf().host, 1, 3)
    with pytest.raises(errors.InvalidRequest, match="unexpected keyword argument 'bogus'"):
        asked.worker({}, bogus=1)


def test_every_method_is_documented():
    text = DOCUMENTED.read_text(encoding="utf-8")
    assert [name for name in METHODS if f"| `{name}` |" not in text] == []


def test_a_worker_without_a_place_is_not_served(caplog):
    transport = None
    with contextlib.ExitStack() as ending:
        endpoint.serve_introspection(a_conf(), MANAGER, WorkerTable(1), transport, ending)
    assert "one too many" in caplog.text
