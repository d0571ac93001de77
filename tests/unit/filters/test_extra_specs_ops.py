"""(value on the host, requirement) -> satisfied or not."""

from __future__ import annotations

import pytest

from scheduler.filters import extra_specs_ops

ROWS = [
    # plain equality
    ("gold", "gold", True),
    ("Gold", "gold", False),
    ("", "", True),
    ("x", "", False),
    (" ", " ", True),
    ("", " ", False),
    ("> 5", "> 5", True),
    ("10", "> 5", False),
    ("10", "< 20", False),
    ("5", ">=5", False),
    ("x", "<OR> x", False),
    (None, "x", False),
    # numbers
    ("6", "= 5", True),
    ("5", "= 5", True),
    ("4", "= 5", False),
    ("5.0", "== 5", True),
    ("5", "!= 5", False),
    ("5", "!= 6", True),
    ("-1", ">= 0", False),
    ("0", ">= 0", True),
    ("0", "<= -1", False),
    ("1e3", "== 1000", True),
    ("inf", ">= 99999", True),
    ("nan", "== nan", False),
    ("5", ">= 3 9", True),
    ("5", ">=", False),
    (None, "!= 5", False),
    # text
    ("10", "s< 9", True),
    ("b", "s>= b", True),
    ("b", "s> b", False),
    ("a", "s<= b", True),
    ("x", "s== x", True),
    ("True", "s== true", False),
    ("x", "s!= y", True),
    (None, "s!= x", False),
    ("x", "s==", False),
    # parts of text
    ("abcd", "<in> bc zz", True),
    ("abcd", "<in> ac", False),
    ("abcd", "<in>", False),
    ("['aes', 'vmx']", "<in> ae", True),
    ("['aes', 'vmx']", "<all-in> aes vmx", True),
    ("['aes', 'vmx']", "<all-in> aes avx", False),
    ("['aes', 'vmx']", "<all-in>", False),
    # alternatives
    ("a", "<or> a", True),
    ("b", "<or> a <or> b", True),
    ("b", "<or> a xx b", True),
    ("b", "<or> a b", False),
    ("c", "<or> a b c", True),
    ("b", "<or> a <or>", False),
    ("a", "<or> a <or>", True),
    ("1", "<or> 1.0", False),
    (None, "<or>", False),
]


@pytest.mark.parametrize(("value", "requirement", "satisfied"), ROWS)
def test_a_requirement_is_satisfied_or_not(value, requirement, satisfied):
    assert extra_specs_ops.match(value, requirement) is satisfied


@pytest.mark.parametrize(
    ("value", "requirement"),
    [("abc", "= 5"), ("5", ">= abc"), ("", "== 0"), ("0x5", "== 5"), ("x", "<or>")],
)
def test_what_cannot_be_compared_is_an_error(value, requirement):
    with pytest.raises(ValueError, match=r"\S"):
        extra_specs_ops.match(value, requirement)
