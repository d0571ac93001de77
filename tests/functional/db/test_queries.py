"""The unit tests of the queries once more, on servers; the names of tests differ."""

from tests.unit.db.test_aggregates import *  # noqa: F403
from tests.unit.db.test_build_requests import *  # noqa: F403
from tests.unit.db.test_compute_nodes import *  # noqa: F403
from tests.unit.db.test_decisions import *  # noqa: F403
from tests.unit.db.test_flavors import *  # noqa: F403
from tests.unit.db.test_groups import *  # noqa: F403
from tests.unit.db.test_instances import *  # noqa: F403
from tests.unit.db.test_layout import *  # noqa: F403
from tests.unit.db.test_mappings import *  # noqa: F403
from tests.unit.db.test_rows import *  # noqa: F403
from tests.unit.db.test_services import *  # noqa: F403
