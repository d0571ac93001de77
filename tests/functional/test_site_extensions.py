"""A driver and filters of sites, as they were written for Nova's releases, in a boot over RabbitMQ.

Each is a file in the folder of site extensions, and the name of its class in the configuration.
"""

import json
import pathlib

import pytest

from tests.world.booting import boot, hosts, states

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"

#: Callers from 10.1... get compute-01, all others compute-02.
HAVANAS = """
from nova import exception
from nova.openstack.common import log as logging
from nova.openstack.common.gettextutils import _
from nova.scheduler import driver
from oslo.config import cfg

CONF = cfg.CONF
CONF.import_opt("compute_topic", "nova.compute.rpcapi")
LOG = logging.getLogger(__name__)


class SiteScheduler(driver.Scheduler):
    def _schedule(self, context, topic):
        remote_ip = context.remote_address
        wanted = "compute-01" if remote_ip.startswith("10.1") else "compute-02"
        hosts = [host for host in self.hosts_up(context.elevated(), topic) if host == wanted]
        if not hosts:
            raise exception.NoValidHost(reason=_("No hosts up"))
        return hosts[0]

    def select_destinations(self, context, request_spec, filter_properties):
        dests = []
        for _number in range(request_spec["num_instances"]):
            host = self._schedule(context, CONF.compute_topic)
            dests.append(dict(host=host, nodename=None, limits=None))
        return dests
"""
HAVANAS_FILTER = """
from nova.openstack.common import log as logging
from nova.scheduler import filters

LOG = logging.getLogger(__name__)


class NotTheFirst(filters.BaseHostFilter):
    def host_passes(self, host_state, filter_properties):
        instance_type = filter_properties.get("instance_type")
        return instance_type["memory_mb"] < 1024 or host_state.host != "compute-01"
"""
NEWTONS_FILTER = """
import nova.conf
from nova.scheduler import filters
from nova.scheduler.filters import utils

CONF = nova.conf.CONF


class NotTheSecond(filters.BaseHostFilter):
    run_filter_once_per_request = True

    def host_passes(self, host_state, spec_obj):
        racks = utils.aggregate_values_from_key(host_state, "rack")
        return not racks and (spec_obj.memory_mb < 1024 or host_state.host != "compute-02")
"""
ENABLED = "ComputeFilter, NotTheFirst, NotTheSecond"


@pytest.fixture(scope="module")
def cloud(on_sqlite):
    """Three hosts and a conductor; each test brings its scheduler."""
    with on_sqlite(settings={"DEFAULT": {"periodic_fuzzy_delay": 0}}) as made:
        made.sync_database()
        made.start_computes(3, "--build-seconds", "0").wait_ready()
        made.start_conductor().wait_ready()
        yield made


def start(cloud, tmp_path, files, driver="filter_scheduler", **filtering):
    """A scheduler whose folder of site extensions has these *files*."""
    filtering.setdefault("enabled_filters", "ComputeFilter")  # as others may have set it
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    cloud.configure(
        {
            "scheduler": {"nova_compat_imports": True, "driver": driver},
            "filter_scheduler": {"extensions_directory": tmp_path, **filtering},
        }
    )
    return cloud.start_scheduler().wait_ready()


def a_case(folder):
    """The recorded case of the documentation, with the filters in *folder*."""
    case = json.loads((EXAMPLES / "quiet_hosts.jsonl").read_text(encoding="utf-8"))
    case["config"] = {
        "scheduler": {"nova_compat_imports": True},
        "filter_scheduler": {
            "extensions_directory": str(folder),
            "enabled_filters": [each.strip() for each in ENABLED.split(",")],
        },
    }
    path = folder / "case.jsonl"
    path.write_text(json.dumps(case), encoding="utf-8")
    return str(path)


def test_a_driver_of_a_site(cloud, tmp_path):
    """Those of other releases: tests/unit/drivers/test_older_forms."""
    files = {"site_driver.py": HAVANAS}
    scheduler = start(cloud, tmp_path, files, driver="SiteScheduler")
    try:
        near = boot(cloud, "m1.tiny", "--count", "2", "--remote-address", "10.1.7.42")
        others = boot(cloud, "m1.tiny")
        assert (states(near), states(others)) == ({"ACTIVE"}, {"ACTIVE"}), scheduler.log
        assert hosts(near) + hosts(others) == ["compute-01"] * 2 + ["compute-02"]
    finally:
        scheduler.terminate()


def test_filters_of_sites_and_a_boot_of_todays_api(cloud, tmp_path):
    files = {"site_filters.py": HAVANAS_FILTER, "more_filters.py": NEWTONS_FILTER}
    scheduler = start(cloud, tmp_path, files, enabled_filters=ENABLED)
    try:
        for words in (["config", "validate"], ["upgrade", "check"], ["evaluate", a_case(tmp_path)]):
            done = cloud.run("nova-scheduler-manage", *words)
            assert done.returncode in (0, 1), done.stdout + done.stderr
        asked = [each["name"] for each in json.loads(done.stdout)["filters"]]
        assert asked == ENABLED.split(", ")
        servers = boot(cloud, "m1.small", "--count", "2", "--api", "current")
        assert (states(servers), set(hosts(servers))) == ({"ACTIVE"}, {"compute-03"})
    finally:
        scheduler.terminate()
