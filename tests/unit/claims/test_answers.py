"""An answer comes back as it was given."""

from __future__ import annotations

import json

import pytest

from scheduler import errors, objects
from scheduler.claims import answers


def selection(host, limits=None):
    made = objects.Selection(service_host=host, nodename=f"{host}.example")
    if limits is not None:
        made.limits_exact = limits
    return made


def test_selections_come_back_with_exact_limits():
    given = [
        selection("h1", {"memory_mb": 6144.5, "vcpu": 64, "numa_topology": object()}),
        selection("h2"),
        selection("h3", {}),
    ]

    text = answers.to_text(given)
    found = answers.of_text(text)

    assert [each.service_host for each in found] == ["h1", "h2", "h3"]
    assert [each.nodename for each in found] == ["h1.example", "h2.example", "h3.example"]
    assert [each.limits_exact for each in found] == [{"memory_mb": 6144.5, "vcpu": 64}, {}, {}]
    assert ": " not in text
    assert ", " not in text


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (errors.NoValidHost(reason="all are full"), "all are full"),
        (errors.NoValidHost("in words of its own"), ""),
    ],
)
def test_a_refusal_comes_back_in_its_words(refusal, reason):
    text = answers.refusal_to_text(refusal)

    assert json.loads(text) == {"refused": reason}
    with pytest.raises(errors.NoValidHost) as caught:
        answers.of_text(text)
    assert caught.value.kwargs["reason"] == reason
