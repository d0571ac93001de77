"""The unit tests of the queries once more, on servers; the names of tests differ."""

from tests.unit.db.test_api_tables import *  # noqa: F403
from tests.unit.db.test_decisions import *  # noqa: F403
from tests.unit.db.test_fleet_aggregates import *  # noqa: F403
from tests.unit.db.test_fleet_changes import *  # noqa: F403
from tests.unit.db.test_instances import *  # noqa: F403
from tests.unit.db.test_layout import *  # noqa: F403
from tests.unit.db.test_mappings import *  # noqa: F403
from tests.unit.db.test_nodes_and_services import *  # noqa: F403
