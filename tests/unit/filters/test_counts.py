"""(number on the host, maximum) -> may take one more or not, for the filters that count."""

from __future__ import annotations

import logging

import pytest

from scheduler.filters.io_ops_filter import AggregateIoOpsFilter, IoOpsFilter
from scheduler.filters.num_instances_filter import AggregateNumInstancesFilter, NumInstancesFilter
from tests.unit.filters.judging import judge, rows

# filter, its form that aggregates overrule, column, option, default, reason
KINDS = pytest.mark.parametrize(
    ("plain", "of_aggregates", "column", "option", "default", "reason"),
    [
        (IoOpsFilter, AggregateIoOpsFilter, "num_io_ops", "max_io_ops_per_host", 8, "io_ops.busy"),
        (NumInstancesFilter, AggregateNumInstancesFilter, "num_instances",
         "max_instances_per_host", 50, "num_instances.full"),
    ],
    ids=["io_ops", "num_instances"],
)  # fmt: skip


@KINDS
def test_the_option_is_the_maximum(plain, of_aggregates, column, option, default, reason):
    for number, maximum, refused in ((0, 1, ""), (1, 1, reason), (0, 0, reason)):
        assert judge(plain, {column: number}, **{option: maximum}) == refused
    for number, refused in ((default - 1, ""), (default, reason)):
        assert judge(plain, {column: number}) == refused
        assert judge(of_aggregates, {column: number}) == (refused and f"aggregate_{refused}")


@KINDS
@pytest.mark.parametrize(
    ("metadata", "number", "passes"),
    rows(
        ("an aggregate's", ["5"], 5, False),
        ("more than the option", ["100"], 99, True),
        ("the smallest as a number", ["10", "9"], 9, False),
        ("blanks", [" 5 "], 4, True),
        ("zero closes the host", ["0"], 0, False),
        ("so does less", ["-1"], 0, False),
    ),
)
def test_aggregates_set_the_maximum(
    plain, of_aggregates, column, option, default, reason, metadata, number, passes
):
    aggregates = [{option: text} for text in metadata]

    found = judge(of_aggregates, {"aggregates": aggregates, column: number})

    assert found == ("" if passes else f"aggregate_{reason}")


@KINDS
@pytest.mark.parametrize("text", ["5.0", "5,6", "", "x", "1" * 400])
def test_one_bad_value_spoils_all_and_is_logged(
    plain, of_aggregates, column, option, default, reason, text, caplog
):
    metadata = [{option: "1"}, {option: text}]

    with caplog.at_level(logging.WARNING):
        found = judge(of_aggregates, {"aggregates": metadata, column: 2})

    # Only the number too large for anything is one: the other value is smaller.
    assert found == (f"aggregate_{reason}" if text.isdecimal() else "")
    assert (f"Could not decode {option}" in caplog.text) is not text.isdecimal()
