"""(number on the host, maximum) -> may take one more or not, for the filters that count."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import a_conf, a_host, a_request, verdict


@dataclass(frozen=True)
class Counting:
    """A filter, its form that aggregates overrule, what they count and up to where."""

    plain: Any
    of_aggregates: Any
    column: str
    option: str
    default: int
    reason: str


class CountingTests:
    """The rows that every filter of this kind keeps."""

    counting: Counting

    @pytest.mark.parametrize(
        ("number", "maximum", "passes"),
        [
            pytest.param(0, 1, True, id="one allowed"),
            pytest.param(1, 1, False, id="one allowed and there"),
            pytest.param(0, 0, False, id="none allowed"),
        ],
    )
    def test_the_maximum_closes_the_host(self, number, maximum, passes):
        asked = self.counting.plain(a_conf(**{self.counting.option: maximum}))

        found = verdict(asked, a_host(**{self.counting.column: number}), a_request())

        assert found == ([] if passes else [self.counting.reason])

    @pytest.mark.parametrize("below", [1, 0])
    def test_the_default_maximum(self, below):
        host = a_host(**{self.counting.column: self.counting.default - below})

        found = verdict(self.counting.plain(a_conf()), host, a_request())

        assert found == [self.counting.reason][below:]

    @pytest.mark.parametrize(
        ("metadata", "number", "passes"),
        [
            pytest.param(["5"], 5, False, id="an aggregate's"),
            pytest.param(["100"], 99, True, id="more than the option"),
            pytest.param(["10", "9"], 9, False, id="the smallest as a number"),
            pytest.param([" 5 "], 4, True, id="blanks"),
            pytest.param(["0"], 0, False, id="zero closes the host"),
            pytest.param(["-1"], 0, False, id="so does less"),
        ],
    )
    def test_aggregates_set_the_maximum(self, metadata, number, passes):
        aggregates = [{self.counting.option: text} for text in metadata]
        host = a_host(aggregates=aggregates, **{self.counting.column: number})

        found = verdict(self.counting.of_aggregates(a_conf()), host, a_request())

        assert found == ([] if passes else [f"aggregate_{self.counting.reason}"])

    @pytest.mark.parametrize("below", [1, 0])
    def test_without_aggregates_the_option_is_the_maximum(self, below):
        host = a_host(**{self.counting.column: self.counting.default - below})

        found = verdict(self.counting.of_aggregates(a_conf()), host, a_request())

        assert found == [f"aggregate_{self.counting.reason}"][below:]

    @pytest.mark.parametrize("text", ["5.0", "5,6", "", "x", "1" * 400])
    def test_one_bad_value_spoils_all_and_is_told(self, text, caplog):
        metadata = [{self.counting.option: "1"}, {self.counting.option: text}]
        host = a_host(aggregates=metadata, **{self.counting.column: 2})

        with caplog.at_level(logging.WARNING):
            found = verdict(self.counting.of_aggregates(a_conf()), host, a_request())

        # Only the number too large for anything is one: the other value is smaller.
        assert found == ([f"aggregate_{self.counting.reason}"] if text.isdecimal() else [])
        assert (f"Could not decode {self.counting.option}" in caplog.text) is not text.isdecimal()
