"""The tests of claims in a database once more, on MariaDB and PostgreSQL."""

from tests.unit.claims.test_alternates import *  # noqa: F403
from tests.unit.claims.test_cells_and_devices import *  # noqa: F403
from tests.unit.claims.test_claiming import *  # noqa: F403
from tests.unit.claims.test_database_claims import *  # noqa: F403
from tests.unit.claims.test_going_back import *  # noqa: F403
from tests.unit.claims.test_reader import *  # noqa: F403
from tests.unit.claims.test_refusals import *  # noqa: F403
from tests.unit.claims.test_writer import *  # noqa: F403
