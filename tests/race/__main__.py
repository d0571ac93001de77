"""Run the race, print its table; the status is 1 if a promise was broken."""

import logging
import sys
from collections.abc import Sequence
from typing import Any

from scheduler import concurrency
from tests.race.plan import Plan
from tests.world import results


def main(argv: Sequence[str] | None = None) -> int:
    # Before oslo.messaging is imported, which would settle on eventlet.
    concurrency.activate(concurrency.THREADING)
    from tests.race import allocations, run  # noqa: PLC0415

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("tests.race").setLevel(logging.INFO)
    results.end_on_sigterm()
    plan = results.parse(Plan, "python -m tests.race", __doc__, argv)
    form: Any = allocations if plan.claims == "placement" else run
    outcome = form.race(plan)
    results.publish(form.render(plan, outcome))
    return 1 if form.broken(plan, outcome) else 0


if __name__ == "__main__":
    sys.exit(main())
