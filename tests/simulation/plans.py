"""Plans of runs: who asks for what when, what breaks when; all from one seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

IN_A_READ: Final = "freeze in a read"
#: Kinds of faults, each with the amounts that one is drawn from.
FAULTS: Final[dict[str, tuple[float, ...]]] = {
    "kill": (0.05, 1.0, 5.0),
    "freeze": (0.3, 2.5, 6.0, 20.0),
    # The same when its next statement is on its way.
    "kill in a statement": (0.05, 1.0, 5.0),
    "freeze in a statement": (0.3, 2.5, 6.0, 20.0),
    # When it has read the claims, and what the hosts report is on its way.
    IN_A_READ: (6.0, 9.0),
    "jump": (2.5, 5.0, 700.0),
    "breaks": (0.02, 0.1),
    "down": (0.5, 4.0),
    "restart": (0.0,),
}
#: The tables of claims go back so many seconds: a restore, or a replica that takes over.  Who is
#: stopped for longer than the grace period cannot write its claims again.
GOING_BACK: Final = {"restore": (0.05, 0.5, 3.0), "kill": FAULTS["kill"], "freeze": (0.3, 1.5)}
DURATION: Final = 20.0


@dataclass(frozen=True)
class RequestPlan:
    """One request: when, how large, for how many, and what becomes of its instances."""

    number: int
    at: float
    gb: int
    count: int
    fate: str
    pause: float


@dataclass(frozen=True)
class Fault:
    """Something that breaks."""

    at: float
    kind: str
    target: int
    amount: float


@dataclass(frozen=True)
class Plan:
    seed: int
    schedule: int
    dialect: str
    schedulers: int
    hosts: int
    host_gb: int
    requests: tuple[RequestPlan, ...]
    faults: tuple[Fault, ...]
    #: Probabilities: that a task goes on, that one is slow, and by how much; seconds of a step.
    stick: float
    slow: float
    tick: float
    #: Probabilities that a message comes twice, is lost, or comes late.
    twice: float
    lost: float
    late: float
    acknowledges_first: bool

    @classmethod
    def from_seed(
        cls, seed: int, dialect: str | None = None, kinds: Mapping[str, Any] | None = None
    ) -> Self:
        """Draw a plan, on a server of that *dialect* and with those *kinds* of faults if given.

        Else claims go back in each fourth.
        """
        rng = random.Random(seed)
        schedulers, hosts = rng.choice((2, 2, 3)), rng.choice((2, 2, 3, 5))
        requests = _requests(rng)
        kinds = (GOING_BACK if rng.random() < 0.25 else FAULTS) if kinds is None else kinds
        faults = _faults(rng, kinds, requests, schedulers)
        return cls(
            seed,
            schedule=seed,
            dialect=dialect or rng.choice(("mariadb", "postgresql")),
            schedulers=schedulers,
            hosts=hosts,
            host_gb=rng.choice((3, 4, 6)),
            requests=requests,
            faults=faults,
            stick=rng.choice((0.0, 0.5, 0.9)),
            slow=rng.choice((0.0, 0.3, 0.95)),
            tick=rng.choice((0.0002, 0.001, 0.004)),
            twice=rng.choice((0.0, 0.2)),
            lost=rng.choice((0.0, 0.1)),
            late=rng.choice((0.0, 0.2)),
            acknowledges_first=rng.random() < 0.3,
        )

    def but(self, **changes: Any) -> Self:
        return replace(self, **changes)


def _faults(
    rng: random.Random, kinds: Mapping[str, Any], requests: tuple[RequestPlan, ...], schedulers: int
) -> tuple[Fault, ...]:
    """Claims go back where they are made, and reads stop that a request waits for.

    All else breaks at any time.
    """

    def at(kind: str) -> float:
        if "restore" in kinds or kind == IN_A_READ:
            return rng.choice(requests).at + rng.uniform(0.0, 2.0)
        return rng.uniform(0, DURATION)

    return tuple(
        Fault(at(kind), kind, rng.randrange(schedulers), rng.choice(amounts))
        for kind, amounts in kinds.items()
        for _number in range(rng.choice((0, 0, 1, 2)))
    )


def _requests(rng: random.Random) -> tuple[RequestPlan, ...]:
    busy, waves = rng.choice((0.1, 0.5, 3.0, DURATION)), (0.0, rng.choice((0.0, 1.0, 4.0)))
    return tuple(
        RequestPlan(
            number,
            at=rng.choice(waves) + rng.uniform(0, busy),
            gb=rng.choice((1, 1, 2, 3)),
            count=rng.choice((1, 1, 2)),
            fate=rng.choice(("build", "build", "build", "fail", "cancel", "retry", "twice")),
            pause=rng.choice((0.0, 0.05, 1.0, 4.0)),
        )
        for number in range(rng.randint(6, 24))
    )
