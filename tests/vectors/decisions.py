"""What this scheduler decides in a recorded case, in the words of the recording."""

from __future__ import annotations

import random
from typing import Any

from scheduler import errors
from scheduler.drivers.pipeline import Decision, Policy
from scheduler.explain.record import DecisionRecord
from scheduler.filters import registry as filters
from scheduler.filters.chain import FilterChain
from scheduler.hosts import selector
from scheduler.hosts.candidates import Candidates, Scope
from scheduler.weights import registry as weights
from scheduler.weights.weighing import weigh
from tests.vectors.cases import Case

NUMBERS = ("free_ram_mb", "free_disk_mb", "vcpus_used", "num_instances", "num_io_ops")


def first_instance(case: Case) -> dict[str, Any]:
    """``filters``, ``passed``, ``weights`` and ``limits``; or ``error`` where it fails."""
    conf = case.conf()
    table = case.books(conf).table
    chain = filters.load_chain(conf)
    try:
        spec = case.request()
        if uuids := case.content.get("instance_uuids"):
            spec.instance_uuid = uuids[0]
        scope = Scope(table, case.now(), conf.service_down_time)
        narrowed = selector.narrow(Candidates(scope, table.order), spec)
        steps, left = _run(chain, narrowed, spec)
        weighed = weigh(weights.load_weighers(conf), left, spec)
    except errors.InvalidRequest:
        return {"error": "InvalidRequest"}
    states = left.states()
    limits = {} if narrowed.skip_filters else {_name(s): chain.limits(s, spec) for s in states}
    return {
        "filters": steps,
        "passed": _pairs(left),
        "weights": {
            _name(state): float(total)
            for state, total in zip(weighed.hosts.states(), weighed.totals, strict=True)
        },
        "limits": {name: each for name, each in limits.items() if each},
    }


def whole_request(case: Case) -> dict[str, Any]:
    """``selected``, ``alternates`` and ``state_after``; or ``error`` where it fails."""
    conf = case.conf()
    books = case.books(conf)
    policy = Policy(
        chain=filters.load_chain(conf),
        weighers=weights.load_weighers(conf),
        host_subset_size=conf.filter_scheduler.host_subset_size,
        shuffle_best_same_weighed_hosts=conf.filter_scheduler.shuffle_best_same_weighed_hosts,
        service_down_time_seconds=conf.service_down_time,
    )
    uuids = case.content.get("instance_uuids") or []
    record = DecisionRecord(None, tuple(uuids), len(uuids), seed=0)
    alternates = conf.scheduler.max_attempts - 1 if case.content.get("return_alternates") else 0
    try:
        spec = case.request()
        decision = Decision(books, policy, random.Random(0), case.now(), record)
        placement = decision.place(spec, uuids, len(uuids) or spec.num_instances, alternates)
    except (errors.InvalidRequest, errors.NoValidHost) as error:
        return {"error": type(error).__name__}
    return {
        "selected": [[state.host, state.nodename] for state in placement.hosts],
        "alternates": [[[s.host, s.nodename] for s in each] for each in placement.alternates],
        "state_after": {
            _name(state): {name: getattr(state, name) for name in NUMBERS}
            for state in placement.hosts
        },
    }


def _run(
    chain: FilterChain, narrowed: selector.Narrowed, spec: Any
) -> tuple[list[Any], Candidates]:
    left = narrowed.hosts
    steps: list[dict[str, Any]] = []
    if narrowed.skip_filters or not len(left):
        return steps, left
    for each in chain.filters:
        left, _counts = FilterChain([each]).run(left, spec)
        steps.append({"name": each.name, "passed": _pairs(left)})
        if not len(left):
            break
    return steps, left


def _name(state: Any) -> str:
    return f"{state.host}/{state.nodename}"


def _pairs(hosts: Candidates) -> list[list[str]]:
    return sorted([state.host, state.nodename] for state in hosts.states())
