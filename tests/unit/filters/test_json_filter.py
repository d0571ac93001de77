"""(attributes of the host, query) -> matches or not."""

from __future__ import annotations

import json

import pytest

from scheduler.filters.json_filter import JsonFilter
from tests.builders import a_conf, a_host, a_request, verdict

NO_MATCH = ["json.no_match"]


@pytest.mark.parametrize(
    ("hints", "reasons"),
    [
        pytest.param(None, [], id="no hints"),
        pytest.param({}, [], id="no hint"),
        pytest.param({"query": [""]}, [], id="empty hint"),
        pytest.param({"query": []}, [], id="no query"),
        pytest.param({"query": [json.dumps([">=", "$free_ram_mb", 4096])]}, [], id="matches"),
        pytest.param({"query": [json.dumps([">", "$free_ram_mb", 4096])]}, NO_MATCH, id="does not"),
    ],
)
def test_the_query_decides(hints, reasons):
    assert verdict(JsonFilter(a_conf()), a_host(), a_request(hints=hints)) == reasons


@pytest.mark.parametrize(
    "query", [["<=", "$disk_allocation_ratio", 1.0], ["=", "$hypervisor_hostname", "n1"]], ids=str
)
@pytest.mark.parametrize(("reported", "reasons"), [(True, []), (False, NO_MATCH)])
def test_a_row_never_filled_in_has_neither_ratios_nor_a_hypervisor(query, reported, reasons):
    state = a_host(reported=reported)
    assert verdict(
        JsonFilter(a_conf()), state, a_request(hints={"query": [json.dumps(query)]})
    ) == (reasons)
