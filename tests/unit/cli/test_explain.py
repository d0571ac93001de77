"""``explain`` where no worker remembers; what workers say is tried over a real bus."""

from pathlib import Path

from scheduler import exit_codes
from scheduler.engine.record import DecisionRecord
from scheduler.explain.store import Store


def test_without_workers_the_database_is_asked(database, config_file, run, refused):
    with Path(config_file).open("a") as file:
        file.write("[DEFAULT]\ntransport_url = fake://\n")
    store = Store(database, "sched1", 7, 1000)
    store.put(DecisionRecord("req-1", ("u1",), 1, 7, outcome="no_host_fits", failure="No"))
    store.close()
    status, printed, warned = run("explain", "u1", "--host", "h1")
    assert (status, printed.splitlines()[0]) == (exit_codes.OK, "No host fits: No.")
    assert "by the database" in printed
    assert ["reaches no scheduler" in warned, "nothing on single hosts" in warned] == [True, True]
    assert "reaches no scheduler" in refused("explain", "u2")
