"""(host and node, hosts tried before) -> tried or not."""

from __future__ import annotations

import logging

import pytest

from scheduler import objects
from scheduler.filters.retry_filter import RetryFilter
from tests.builders import a_conf, a_host, a_request, verdict

TRIED = ["retry.tried"]


@pytest.mark.parametrize(
    ("tried", "reasons"),
    [
        pytest.param(None, [], id="no retry"),
        pytest.param([], [], id="nothing tried"),
        pytest.param([("h1", "n1")], TRIED, id="tried"),
        pytest.param([("h2", "n2"), ("h1", "n1")], TRIED, id="tried second"),
        pytest.param([("h1", "n2")], [], id="another node of the host"),
        pytest.param([("h2", "n1")], [], id="another host"),
        pytest.param([("H1", "n1")], [], id="hosts have a case"),
        pytest.param([("h1", None)], [], id="no node known"),
    ],
)
def test_both_names_must_have_been_tried(tried, reasons):
    assert verdict(RetryFilter(a_conf()), a_host(), a_request(tried=tried)) == reasons


def test_a_retry_record_without_hosts_is_no_retry():
    request = a_request()
    request.retry = objects.SchedulerRetries()

    assert verdict(RetryFilter(a_conf()), a_host(), request) == []


def test_the_line_that_operators_look_for(caplog):
    with caplog.at_level(logging.INFO):
        verdict(RetryFilter(a_conf()), a_host(), a_request(tried=[("h1", "n1")]))

    assert "Host [('h1', 'n1')] fails.  Previously tried hosts: [('h1', 'n1')]" in [
        record.getMessage() for record in caplog.records
    ]
