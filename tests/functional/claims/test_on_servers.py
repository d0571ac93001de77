"""The tests of claims in a database once more, on MariaDB and PostgreSQL."""

from scheduler.db import claims as claim_rows
from scheduler.db.tables import claims
from tests.unit.claims.fleets import GB, a_name
from tests.unit.claims.test_alternates import *  # noqa: F403
from tests.unit.claims.test_cells_and_devices import *  # noqa: F403
from tests.unit.claims.test_claiming import *  # noqa: F403
from tests.unit.claims.test_database_claims import *  # noqa: F403
from tests.unit.claims.test_going_back import *  # noqa: F403
from tests.unit.claims.test_going_back import put_back
from tests.unit.claims.test_reader import *  # noqa: F403
from tests.unit.claims.test_refusals import *  # noqa: F403
from tests.unit.claims.test_writer import *  # noqa: F403


def test_claims_that_are_lost_between_the_statements_of_a_read_are_missed(
    fleet, worker, monkeypatch
):
    """With SQLite a read is one snapshot."""
    one, other = worker(), worker()
    one.hosts("req-1", GB, a_name())
    one.manager.refresh()
    other.hosts("req-2", GB, a_name())
    by_ids = claim_rows.by_ids

    def late(connection, ids):
        monkeypatch.setattr(claim_rows, "by_ids", by_ids)
        put_back(fleet.database, {claims: ()})
        return by_ids(connection, ids)

    monkeypatch.setattr(claim_rows, "by_ids", late)
    one.driver.claims.read_new()
    assert one.manager.reservations.histories_lost == 1
