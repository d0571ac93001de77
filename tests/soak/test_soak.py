"""The soak: what it calls growth, and that it runs, seconds long, on SQLite."""

import random
import time

import pytest

from tests.soak import engine, look, verdict
from tests.soak.plan import Plan
from tests.soak.verdict import DECISIONS, Scale

TIMES = [minute * 60.0 for minute in range(60)]
NOISE = random.Random(3)


@pytest.mark.parametrize(
    ("name", "values", "is_flat"),
    [
        ("rss_mib", [200 + NOISE.uniform(-5, 5) for _at in TIMES], True),
        ("rss_mib", [200 + NOISE.uniform(-5, 5) + at / 60 for at in TIMES], False),
        ("rss_mib", [200 + 100 * min(1.0, at / 1200) for at in TIMES], True),  # fills up, stays
        ("rss_mib", [200 + 300 * (at == 1800) for at in TIMES], True),  # an outlier
        ("rss_mib", [300 - at / 60 for at in TIMES], True),
        ("fds", [30 + at // 600 for at in TIMES], False),
        ("fds", [30 + at % 120 / 60 for at in TIMES], True),
        ("rows claims", [5000 + 400 * (at % 360) / 360 for at in TIMES], True),
        ("rows claims", [500 + 10 * at for at in TIMES], False),
        ("rows services", [240.0] * 60, True),
    ],
)
def test_what_grows_is_told_from_what_does_not(name, values, is_flat):
    assert verdict.judge(name, list(zip(TIMES, values, strict=True))).is_flat is is_flat


@pytest.mark.parametrize(
    ("scale", "is_flat"),
    [
        (Scale(), False),
        (Scale(least=30_000.0), False),
        (Scale(least=56_000.0), None),
        (Scale(least=56_000.0, least_of={"fds": 30_000.0}), False),
        (Scale(least_of={"fds": 56_000.0}), None),
        (Scale(allowance=20.0), True),
        (Scale(allowed={"fds": (50.0, 0.0)}), True),
    ],
)
def test_it_is_judged_after_the_warm_up_by_what_is_allowed(scale, is_flat):
    points = [(1000.0 * number, 300.0 + number) for number in range(60)]
    assert verdict.judge("fds", points, scale).is_flat is is_flat


@pytest.mark.parametrize(
    ("values", "grows"),
    [
        ([25_000 + 1700 * (at % 3) for at in range(30)], False),
        ([25_000 + 340 * at for at in range(30)], True),
        ([max(0, 500 * (at - 8)) for at in range(30)], True),
        ([50 * at for at in range(30)], False),
    ],
)
def test_types_that_grow_are_found(values, grows):
    # What there is none of, or next to none, is not told of.
    samples = [
        (1000.0 * at, {"function": 3000, **({"Leaked": value} if value else {})})
        for at, value in enumerate(values)
    ]
    found = verdict.growing_types(samples, Scale(DECISIONS, by_type=True))
    assert [each.name for each in found] == ["objects Leaked"] * grows
    assert verdict.growing_types(samples, Scale(DECISIONS)) == []


def test_a_little_soak_of_everything(tmp_path):
    """Decisions, refusals, repeats, deletions and reloads happen; the time is simulated."""
    plan = Plan(hosts=24, servers=60, sample_seconds=0.0, largest=20, leak=1000.0)
    url = f"sqlite:///{tmp_path}/nova.sqlite"
    subject = engine.Engine(plan, url)
    began = time.process_time()
    try:
        for _number in range(60):
            subject.step()
        subject.lull()
        sample, types = subject.look()
        for every in (subject._what_if, subject._ask):
            every(subject._demands.next())
        subject._reload()
        subject.step()
    finally:
        subject.close()
    counts = subject.counts
    assert counts["servers deleted"] > 0
    assert counts["requests answered again"] == 1
    assert {"requests refused", "servers moved", "reports", "what-ifs"} <= counts.keys()
    assert counts["decisions"] > counts["requests answered"]
    assert subject.clock() - subject.clock.begin > 2 * (time.process_time() - began)
    # In a lull they are closed, and purged but for the newest.
    assert sample.get("rows claims", 0) <= 1
    assert sum(types.values()) <= sample["gc_objects"]
    assert types["list"] > 60 * plan.leak, "so that it can be seen to be found"
    assert {name.split()[0] for name in sample} <= verdict.ALLOWED.keys()


def test_growth_is_told_in_the_last_line(tmp_path):
    kept = look.Kept(tmp_path / "looks.jsonl")
    for number in range(20):
        kept.add(30.0, {"fds": 7.0 + number}, decisions=100 * number)
    done = {"decisions": 1234}
    text, grows = verdict.report("a form", done, [("a process", kept)], Scale(DECISIONS))
    assert grows
    assert text.splitlines()[-1] == "1,234 decisions; these grow: fds"
