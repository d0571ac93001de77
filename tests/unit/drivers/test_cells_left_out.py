"""What a decision says of cells that did not answer."""

from oslo_context import context

from scheduler import drivers
from scheduler.db.cells import CellsReader
from scheduler.db.database import Database
from scheduler.db.databases import Databases
from scheduler.hosts.host_manager import HostManager
from tests.builders import OWN_UUID, a_conf, a_request
from tests.novas import Nova


def test_the_record_names_cells_that_were_left_out(make_url):
    nova = Nova(make_url, cells={"a": ["a1"], "b": ["b1"]})
    conf = a_conf(enabled_filters=["RamFilter"])
    databases = Databases(Database(nova.urls["cell0"]), Database(nova.urls["api"]))
    driver = drivers.load(conf, HostManager(conf, CellsReader(conf, databases)))
    for left_out in ((), (nova.uuids["b"],)):
        if left_out:
            nova.execute("b", "DROP TABLE compute_nodes")
        ((chosen, *_),) = driver.select_destinations(
            context.RequestContext(), a_request(), [OWN_UUID]
        )
        assert driver.recorder.records[-1].cells_left_out == left_out
    assert (chosen.service_host, chosen.cell_uuid) == ("a1", nova.uuids["a"])
    databases.dispose()
