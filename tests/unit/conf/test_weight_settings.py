"""(items of an option) -> pairs, and what is said of bad ones."""

from __future__ import annotations

import logging
import math

import pytest

from scheduler.conf import weight_settings


@pytest.mark.parametrize(
    ("items", "pairs"),
    [
        ([], []),
        (["a=1"], [("a", 1.0)]),
        (["a=1", "a=2.5"], [("a", 1.0), ("a", 2.5)]),
        (["b = -2"], [("b ", -2.0)]),
        (["f=inf"], [("f", math.inf)]),
    ],
)
def test_good_items(items, pairs, caplog):
    with caplog.at_level(logging.WARNING):
        assert weight_settings.parse(items, "an.option") == pairs
    assert caplog.messages == []


def test_a_ratio_that_is_not_a_number_is_one():
    [(name, ratio)] = weight_settings.parse(["f=nan"], "an.option")

    assert name == "f"
    assert math.isnan(ratio)


def test_bad_items_are_told_together(caplog):
    items = ["a=1", "b", "=3", "e=1=2", "", "c="]

    with caplog.at_level(logging.WARNING):
        assert weight_settings.parse(items, "an.option") == [("a", 1.0)]
    assert caplog.messages == [
        "Ignoring the invalid elements of the option an.option: b, =3, e=1=2, , c="
    ]
