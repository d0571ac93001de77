"""``[claims]``, ``[placement]``, ``[neutron]``, ``[workarounds]`` (page config, 6 and 8)."""

import copy
from collections.abc import Mapping

from keystoneauth1 import loading
from oslo_config import cfg

from scheduler import plugins

CLAIMS = cfg.OptGroup("claims", title="Claims", help="Where schedulers keep claims.")

CLAIMS_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="The database for `[scheduler] claims = database`, as a URL like that of `[database] "
        "connection`. Unset: the database of that option, which must then have been made by "
        "`nova-scheduler-manage db sync`. Set it where that one is a real Nova's. All schedulers "
        "and conductors of a fleet must name the same.",
    ),
    cfg.IntOpt(
        "expiry_seconds",
        default=600,
        min=1,
        help="Seconds after which a claim expires whose server never appeared on any host. It must "
        "be longer than a server may wait for a busy compute host.",
    ),
    cfg.IntOpt(
        "grace_seconds",
        default=3,
        min=1,
        help="Seconds in which no scheduler claims after the database went back to an older state. "
        "Meanwhile all schedulers write again what they have answered and is missing there.",
    ),
    cfg.IntOpt(
        "idle_transaction_seconds",
        default=3,
        min=1,
        help="Seconds after which the database ends a transaction of claims whose scheduler does "
        "nothing: it was stopped, or its network is gone. Until then it may keep others from "
        "claiming on its hosts. MySQL has no such limit; it closes idle connections instead.",
    ),
    cfg.IntOpt(
        "lock_wait_seconds",
        default=2,
        min=1,
        help="Seconds that a claim waits for a host that another scheduler is claiming on. Then "
        "the request is decided anew, without that host.",
    ),
]

WORKAROUNDS = cfg.OptGroup("workarounds", title="Workarounds", help="For fleets in transition.")

WORKAROUNDS_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "disable_fallback_pcpu_query",
        default=False,
        help="With `[scheduler] claims = placement`: ask for hosts with CPUs for pinning (PCPU) "
        "only. Otherwise hosts that report all their CPUs as VCPU are asked for as well, for "
        "servers with pinned CPUs.",
    )
]

NAME = "placement"
PLACEMENT = cfg.OptGroup(
    NAME,
    title="Placement",
    help="Where the Placement service is, for `[scheduler] claims = placement`. What else is "
    "needed to log in depends on `auth_type`: `username`, `password`, `project_name`, ... for "
    "`password`, nothing for `none`.",
)

#: Nobody waits longer than its own RPC timeout for an answer.
TIMEOUT_SECONDS = 30
_DEFAULTS = {"timeout": TIMEOUT_SECONDS, "valid_interfaces": ["internal", "public"]}
#: Name of the option in Nova 14 to 17.
_OLD_NAMES = {"valid_interfaces": "os_interface", "region_name": "os_region_name"}

_UNUSED = {
    f"{kind}_{name}" for kind in ("connect", "status_code") for name in ("retries", "retry_delay")
}


def _of_service(service_type: str, old_names: Mapping[str, str]) -> list[cfg.Opt]:
    found = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    own: list[cfg.Opt] = copy.deepcopy(found)
    for each in own:
        if each.dest in _UNUSED:
            each.help = "No effect: see `[scheduler] placement_deadline_seconds`."
        each.default = {**_DEFAULTS, "service_type": service_type}.get(each.dest, each.default)
        if each.dest in old_names:
            each.deprecated_opts.append(cfg.DeprecatedOpt(old_names[each.dest], group=NAME))
    return own


PLACEMENT_OPTIONS: list[cfg.Opt] = [
    *_of_service(NAME, _OLD_NAMES),
    cfg.IntOpt(
        "max_connections",
        default=2,
        min=1,
        help="The most connections of a worker to Placement; further calls wait for one, as long "
        "as for an answer. Each is closed after a quarter of a second. Keep the sum of all workers "
        "near the number of processes and threads that serve Placement.",
    ),
]

NEUTRON_NAME = "neutron"
NEUTRON = cfg.OptGroup(
    NEUTRON_NAME,
    title="Neutron",
    help="Where Neutron is, for `[scheduler] query_placement_for_routed_network_aggregates`. The "
    "other options are those of `[placement]`.",
)
NEUTRON_OPTIONS = [
    *_of_service("network", {}),
    cfg.IntOpt(
        "http_retries",
        default=3,
        min=0,
        help="How often a call is made again that did not reach Neutron.",
    ),
]


def register_login(conf: cfg.ConfigOpts) -> None:
    """Register what ``auth_type`` needs, to see changes of it; the client refuses a wrong type."""
    for group in (NAME, NEUTRON_NAME):
        section = conf[group].auth_section or group
        conf.register_opts(loading.get_auth_common_conf_options(), group=section)
        name = conf[section].auth_type
        if name and name in plugins.entry_point_names("keystoneauth1.plugin"):
            conf.register_opts(loading.get_auth_plugin_conf_options(name), group=section)
