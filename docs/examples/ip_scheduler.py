"""IPScheduler: a random host of the department that the caller's address belongs to.

Callers from 10.1… get hosts whose names start with "doc", those from 10.2… "ops", all others "dev".
Written for Nova's Havana, as its imports show.  It runs here with

    [scheduler]
    nova_compat_imports = true
    driver = ip_scheduler.IPScheduler

``prefix_scheduler.py`` is the same in this project's own style.
"""

import random

from nova import exception
from nova.compute import rpcapi
from nova.openstack.common import log as logging
from nova.openstack.common.gettextutils import _
from nova.scheduler import driver
from oslo.config import cfg

CONF = cfg.CONF
CONF.import_opt("compute_topic", "nova.compute.rpcapi")

LOG = logging.getLogger(__name__)

DEPARTMENTS = (("10.1", "doc"), ("10.2", "ops"))
DEPARTMENT_OF_OTHERS = "dev"


class IPScheduler(driver.Scheduler):
    """Looks at the caller's address and at names of hosts, and at nothing else."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.compute_rpcapi = rpcapi.ComputeAPI()

    def select_destinations(self, context, request_spec, filter_properties):
        """A host for each instance, as dicts; neither node nor limits are looked at."""
        return [
            {"host": self._pick(context, filter_properties), "nodename": None, "limits": None}
            for _number in range(request_spec["num_instances"])
        ]

    def select_hosts(self, context, request_spec, filter_properties):
        """The name of a host for each instance."""
        return [self._pick(context, filter_properties) for _uuid in request_spec["instance_uuids"]]

    def schedule_run_instance(
        self,
        context,
        request_spec,
        admin_password,
        injected_files,
        requested_networks,
        is_first_time,
        filter_properties,
        legacy_bdm_in_spec,
    ):
        """Tell a host to build, for each instance; one that fails does not stop the others."""
        for number, uuid in enumerate(request_spec["instance_uuids"]):
            request_spec["instance_properties"]["launch_index"] = number
            try:
                host = self._pick(context, filter_properties)
                self.compute_rpcapi.run_instance(
                    context,
                    instance=driver.instance_update_db(context, uuid),
                    host=host,
                    request_spec=request_spec,
                    filter_properties=filter_properties,
                    requested_networks=requested_networks,
                    injected_files=injected_files,
                    admin_password=admin_password,
                    is_first_time=is_first_time,
                    legacy_bdm_in_spec=legacy_bdm_in_spec,
                )
            except Exception as error:  # noqa: BLE001
                driver.handle_schedule_error(context, error, uuid, request_spec)

    def _pick(self, context, filter_properties):
        up = self.hosts_up(context.elevated(), CONF.compute_topic)
        if not up:
            raise exception.NoValidHost(reason=_("Is the appropriate service running?"))
        department = department_of(context.remote_address)
        ignored = filter_properties.get("ignore_hosts") or ()
        hosts = [host for host in up if host.startswith(department) and host not in ignored]
        if not hosts:
            raise exception.NoValidHost(reason=_("Could not find another compute"))
        host = random.choice(hosts)
        LOG.debug(_("%s asks: %s of %d hosts"), context.remote_address, host, len(hosts))
        return host


def department_of(address):
    """The department of the caller at *address*, which is None for requests from inside."""
    for prefix, department in DEPARTMENTS:
        if (address or "").startswith(prefix):
            return department
    return DEPARTMENT_OF_OTHERS
