"""Each fault with its promise: what breaks, and how it is mended."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.faults import broker, daemons, database, messages, network, rows
from tests.faults.world import Account, World
from tests.world import results

HEAD: Final = (
    *("fault", "promise", "kept", "lost"),
    *("requests", "asked again", "refused by name", "recovery, s"),
)
KEPT, BROKEN = "yes", "**no**"
NOTHING_LOST: Final = "every request is answered, if need be when it is asked again"
AT_ONCE: Final = "nobody notices"
OTHERS_SERVE: Final = "the other hosts serve"
ONE_ANSWER: Final = "one answer, one claim"
WHILE_AWAY: Final = "StateUnavailable while it is away"
AT_WORST: Final = "StateUnavailable at worst"
NOTHING_BOOKED: Final = "StateUnavailable: nothing can be booked"
WRITTEN_AGAIN: Final = "requests wait; what was answered is claimed again"
#: Promises that nobody has to ask again.
AT_FIRST_TRY: Final = (AT_ONCE, OTHERS_SERVE, ONE_ANSWER)
CLAIMS: Final = ("claims", "claim_hosts")


@dataclass(frozen=True)
class Fault:
    """*act* breaks something and mends it; *refusals* are errors that callers may get."""

    name: str
    promise: str
    act: Callable[[World], None]
    refusals: frozenset[str] = frozenset()

    @property
    def group(self) -> str:
        act = self.act.func if isinstance(self.act, functools.partial) else self.act
        return act.__module__.rpartition(".")[2]

    def broken_by(self, account: Account) -> str:
        """What was not as promised; empty if everything was."""
        if account.lost:
            return f"{account.lost} requests were never answered"
        if unexpected := set(account.refusals) - self.refusals:
            return f"callers got {', '.join(sorted(unexpected))}"
        if account.asked_again and self.promise in AT_FIRST_TRY:
            return f"callers had to ask again {account.asked_again} times"
        return ""


@dataclass(frozen=True)
class Result:
    """What became of one promise; no *account* where its end was not reached."""

    fault: str
    promise: str
    is_kept: bool
    account: Account | None

    @property
    def row(self) -> results.Row:
        kept = KEPT if self.is_kept else BROKEN
        if self.account is None:
            return (self.fault, self.promise, kept, "?", "?", "?", "?", "?")
        refusals = sorted(self.account.refusals.items())
        return (
            *(self.fault, self.promise, kept, str(self.account.lost)),
            *(str(self.account.requests), str(self.account.asked_again)),
            ", ".join(f"{count} {name}" for name, count in refusals) or "0",
            f"{self.account.recovery_seconds:.1f}",
        )


HOUR_SECONDS: Final = 3600
AWAY: Final = frozenset({"StateUnavailable"})

FAULTS: Final = (
    Fault("broker restarted", NOTHING_LOST, broker.restarted),
    Fault("broker stopped for 5 s (SIGSTOP)", NOTHING_LOST, broker.paused),
    Fault("broker killed (SIGKILL)", NOTHING_LOST, broker.killed),
    Fault("all connections to the broker cut", NOTHING_LOST, broker.connections_cut),
    Fault(
        "connections cut between request and reply",
        NOTHING_LOST,
        broker.cut_between_request_and_reply,
    ),
    Fault(
        "connections to the broker silent, new ones well",
        NOTHING_LOST,
        functools.partial(broker.connections_silent, fast_path=True),
    ),
    Fault(
        "the same without the fast path",
        NOTHING_LOST,
        functools.partial(broker.connections_silent, fast_path=False),
    ),
    Fault("one of two schedulers killed (SIGKILL)", NOTHING_LOST, daemons.killed),
    Fault("one of two schedulers told to end (SIGTERM)", AT_ONCE, daemons.stopped),
    Fault("one of two schedulers stopped for 5 s (SIGSTOP)", NOTHING_LOST, daemons.paused),
    Fault(
        "one worker stopped for a minute (SIGSTOP)",
        NOTHING_LOST,
        functools.partial(daemons.worker_paused, seconds=60.0),
    ),
    Fault("database restarted", WHILE_AWAY, database.restarted, AWAY),
    Fault("database killed (SIGKILL)", WHILE_AWAY, database.killed, AWAY),
    Fault("database stopped for 5 s (SIGSTOP)", "requests wait", database.paused, AWAY),
    Fault("each statement takes 2 s longer", "requests wait", database.slow, AWAY),
    Fault("silence between schedulers and database", "given up", database.silent, AWAY),
    Fault("database closes connections that idle for 1 s", AT_WORST, database.impatient, AWAY),
    Fault("connections to the database cut", AT_WORST, database.cut, AWAY),
    Fault("database read-only", NOTHING_BOOKED, database.read_only, AWAY),
    Fault("disk of the database full", NOTHING_BOOKED, database.disk_full, AWAY),
    Fault(
        "rows of all hosts locked for 5 s, lock timeouts of 2 s",
        "requests wait",
        database.rows_locked,
        AWAY,
    ),
    *(
        Fault(
            name,
            WRITTEN_AGAIN,
            functools.partial(database.gone_back, tables=tables, empties=empties),
        )
        for name, tables, empties in (
            ("claims put back to an older copy", CLAIMS, False),
            ("only the claims of servers put back", CLAIMS[:1], False),
            ("only the generations of hosts put back", CLAIMS[1:], False),
            ("all tables of claims emptied", CLAIMS, True),
            ("rows of all claims deleted", CLAIMS[:1], True),
            ("generations of all hosts deleted", CLAIMS[1:], True),
        )
    ),
    Fault("the newest claims deleted", WRITTEN_AGAIN, database.newest_claims_lost),
    Fault("the generation of a host deleted", AT_ONCE, database.one_host_lost),
    Fault("commits lost when the database is killed", WRITTEN_AGAIN, database.commits_lost, AWAY),
    Fault("deadlocks with somebody else's transactions", AT_ONCE, database.deadlocks),
    Fault("requests delivered twice", ONE_ANSWER, messages.delivered_twice),
    Fault("requests that no database can hold", AT_ONCE, messages.poisoned),
    Fault("messages that nobody can read", AT_ONCE, messages.poison),
    Fault("a message that kills its worker", NOTHING_LOST, messages.kills_its_worker),
    Fault("broker away when a scheduler starts", "it waits", daemons.broker_away_at_start),
    Fault(
        "database away when a scheduler starts", "it waits", daemons.database_away_at_start, AWAY
    ),
    Fault("SIGHUP with a broken file", AT_ONCE, daemons.reloaded_with_a_broken_file),
    Fault("100 SIGHUPs a second", AT_ONCE, daemons.reloaded_all_the_time),
    *(
        Fault(
            f"clock of one scheduler an hour {where}, and right again",
            AT_ONCE,
            functools.partial(daemons.clock_jumps, seconds=seconds),
        )
        for where, seconds in (("ahead", HOUR_SECONDS), ("behind", -HOUR_SECONDS))
    ),
    Fault(
        "network cut between one of two schedulers and the broker",
        NOTHING_LOST,
        network.cut_from_broker,
    ),
    Fault(
        "network cut: one scheduler without broker, the other without database",
        "StateUnavailable while it is cut",
        network.cut_from_both,
        AWAY,
    ),
    Fault(
        "cable to the database cut for good, the scheduler behind it killed",
        NOTHING_LOST,
        network.cut_for_good,
    ),
    Fault("disk of the log full", AT_ONCE, daemons.log_disk_full),
    Fault("log to a pipe that nobody reads", AT_ONCE, daemons.log_read_by_nobody),
    Fault("standard input, output and error closed", AT_ONCE, daemons.descriptors_closed),
    Fault(
        "a filter raises, hangs, returns nonsense", "only its requests fail", daemons.filter_broken
    ),
    Fault("half-written rows of one host", OTHERS_SERVE, rows.rows_half_written),
    Fault("hosts register and vanish in a burst", AT_ONCE, rows.hosts_come_and_go),
    Fault("100 answers that the broker refuses", AT_ONCE, messages.answers_refused),
    # Last, as a scheduler that is told to end goes on looking for these queues for a while.
    Fault("callers gone before their answers", AT_ONCE, messages.callers_gone),
    Fault("reply queues deleted", AT_ONCE, messages.reply_queues_deleted),
)
