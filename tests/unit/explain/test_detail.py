"""What is remembered of a decision says of every host what the decision said."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import errors
from scheduler.drivers.pipeline import Decision
from scheduler.drivers.settings import configured_policy
from scheduler.explain.record import DecisionRecord
from scheduler.hosts.books import Books, TrackedInstance
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.standing import StandingResults
from scheduler.weights.weighing import weigh
from tests.builders import NOW, a_conf, a_fleet, a_request

FILTERS = [
    "RamFilter",
    "ServerGroupAffinityFilter",
    "DiskFilter",
    "ComputeFilter",
    "ServerGroupAntiAffinityFilter",
]
MEMBER = "cccccccc-0000-4000-a000-000000000001"


class Manager:
    @staticmethod
    def option_of_filters(conf: Any) -> str:
        return "enabled_filters"


class Engine:
    """Decisions on one table, with results that stand or without."""

    def __init__(self, table: Any, *, stands: bool) -> None:
        self.table, self.books = table, Books(table)
        self.policy = configured_policy(a_conf(enabled_filters=FILTERS), Manager)
        self.results = None
        if stands:
            parts = self.policy.chain.filters, self.policy.weighers, self.policy.semantics
            self.results = StandingResults(table, *parts, 60.0, 1 << 24)

    def decide(self, request: Any, count: int = 1, alternates: int = 0) -> DecisionRecord:
        """The record of one decision, which may be a refusal."""
        record = DecisionRecord("req", (), count, 1, wants_detail=True)
        rng, results = random.Random(1), self.results
        decision = Decision(self.books, self.policy, rng, NOW, record, results=results)
        try:
            placement = decision.place(request, (), count, alternates)
        except errors.NoValidHost as error:
            record.failure = str(error)
        else:
            record.chosen = [(state.host, state.nodename) for state in placement.hosts]
        return record

    def from_scratch(self, request: Any) -> tuple[list[tuple[int, str, list[int]]], Any]:
        """What the filters and weighers say of the table as it is."""
        noted: list[tuple[int, str, list[int]]] = []
        hosts = Candidates(Scope(self.table, NOW, 60.0), self.table.order)
        left, _counts = self.policy.chain.run(
            hosts, request, note=lambda *each: noted.append((each[0], each[1], each[2].tolist()))
        )
        return noted, weigh(self.policy.weighers, left, request, self.policy.semantics)


HOSTS = st.lists(
    st.fixed_dictionaries(
        {
            "free_ram_mb": st.integers(0, 4096),
            "free_disk_mb": st.integers(0, 4096),
            "last_seen": st.sampled_from([NOW, NOW - 3600]),
        }
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    hosts=HOSTS,
    sizes=st.lists(st.sampled_from([64, 512, 2048]), min_size=1, max_size=6),
    policy=st.sampled_from(
        [None, "affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]
    ),
    stands=st.booleans(),
    without_service=st.integers(0, 2),
)
def test_counts_add_up_and_details_are_those_of_the_moment(
    hosts: Any, sizes: Any, policy: str | None, stands: bool, without_service: int
) -> None:
    table = a_fleet(*hosts)
    for number in range(without_service):
        table.put((f"x{number}", "n"), {"node_id": 100 + number})
    table.put_instance("h2", MEMBER, TrackedInstance(MEMBER, "h2"))
    engine = Engine(table, stands=stands)
    told = []
    for size in sizes:
        group = {"policy": policy, "hosts": ["h1", "h2"], "members": [MEMBER]} if policy else None
        request = a_request(flavor={"memory_mb": size, "root_gb": 0}, group=group)
        wanted = engine.from_scratch(request)
        told.append((engine.decide(request), wanted))
    for record, (verdicts, weighed) in told:
        removed = sum(sum(count.removed.values()) for count in record.filters)
        never = sum(record.never_evaluated.values())
        assert never + removed + record.hosts_left == record.fleet == len(table)
        detail = record.detail
        assert detail is not None
        found = [(*verdict, sorted(rows.tolist())) for verdict, rows in detail.verdicts() or []]
        assert found == sorted((index, code, sorted(rows)) for index, code, rows in verdicts)
        ranked = detail.ranked()
        assert ranked is not None
        assert ranked.rows.tolist() == weighed.hosts.rows.tolist()
        assert ranked.totals.tolist() == weighed.totals.tolist()
        if record.top is not None and record.top.pairs:
            value = table.value(int(ranked.rows[0]), "host")
            assert (value, ranked.totals[0]) == (record.top.pairs[0][0], record.top.totals[0])


@pytest.mark.parametrize("stands", [True, False])
def test_the_weights_of_the_best_are_taken_apart(stands: bool) -> None:
    table = a_fleet({"free_ram_mb": 1024}, {"free_ram_mb": 4096}, {"free_ram_mb": 2048})
    record = Engine(table, stands=stands).decide(a_request(), alternates=2)
    assert record.top is not None
    rows = record.top.rows()
    assert [row["host"] for row in rows] == ["h2", "h3", "h1"]
    [ram] = [part for part in rows[1]["weighers"] if part["name"] == "RAMWeigher"]
    assert ram == {
        "name": "RAMWeigher",
        "raw": 2048.0,
        "normalised": 0.5,
        "multiplier": 1.0,
        "weighted": 0.5,
    }
    for row in rows:
        assert np.isclose(row["total"], sum(part["weighted"] for part in row["weighers"]))


def test_what_is_forgotten_is_said_to_be() -> None:
    engine = Engine(a_fleet({}, {}), stands=True)
    request = a_request(flavor={"memory_mb": 1})
    engine.decide(request)
    first = engine.decide(request)
    assert first.detail is not None
    assert first.detail.history is not None
    for number in range(5000):
        engine.table.update(0, {"free_ram_mb": 3000 + number % 2})
        engine.decide(request)
        for pick in list(engine.books):
            engine.books.undo(pick)
    assert (first.detail.verdicts(), first.detail.ranked()) == (None, None)
