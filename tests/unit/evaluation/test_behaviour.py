"""Labels."""

import pytest

from scheduler import errors
from scheduler.evaluation import behaviour
from scheduler.evaluation.behaviour import CURRENT, NEWTON
from tests.unit.evaluation.builders import a_case, a_fleet

FLEET = a_fleet(1)


@pytest.mark.parametrize(
    ("label", "wanted", "expected"),
    [
        ("all", "all", (CURRENT, NEWTON)),
        ("all", "newton", (NEWTON,)),
        ("newton", "all", (NEWTON,)),
        ("newton", "2026", ()),
        ("2026", "2026", (CURRENT,)),
    ],
)
def test_labels(label, wanted, expected):
    assert behaviour.of_case(a_case(FLEET, semantics=label), wanted) == expected


def test_an_unknown_label_is_named():
    with pytest.raises(errors.BadCase, match="suite/d1: semantics 'old'"):
        behaviour.of_case(a_case(FLEET, semantics="old"))
