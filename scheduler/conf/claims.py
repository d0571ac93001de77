"""``[claims]``, ``[placement]``, ``[workarounds]`` (reference page config, sections 6 and 8)."""

import copy

from keystoneauth1 import exceptions, loading
from oslo_config import cfg

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
_DEFAULTS = {
    "timeout": TIMEOUT_SECONDS,
    "valid_interfaces": ["internal", "public"],
    "service_type": "placement",
}
#: Name of the option in Nova 14 to 17.
_OLD_NAMES = {"valid_interfaces": "os_interface", "region_name": "os_region_name"}


_UNUSED = {
    f"{kind}_{name}" for kind in ("connect", "status_code") for name in ("retries", "retry_delay")
}


def _of_placement(option: cfg.Opt) -> cfg.Opt:
    own = copy.deepcopy(option)
    if own.dest in _UNUSED:
        own.help = "No effect: see `[scheduler] placement_deadline_seconds`."
    own.default = _DEFAULTS.get(own.dest, own.default)
    if own.dest in _OLD_NAMES:
        own.deprecated_opts.append(cfg.DeprecatedOpt(_OLD_NAMES[own.dest], group=NAME))
    return own


PLACEMENT_OPTIONS: list[cfg.Opt] = [
    _of_placement(each)
    for each in (
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    )
] + [
    cfg.IntOpt(
        "max_connections",
        default=2,
        min=1,
        help="The most connections of a worker to Placement; further calls wait for one, as long "
        "as for an answer. Each is closed after a quarter of a second. Keep the sum of all workers "
        "near the number of processes and threads that serve Placement.",
    )
]


def register_login(conf: cfg.ConfigOpts) -> None:
    """Register what ``auth_type`` needs, to see changes of it; the client refuses a wrong type."""
    section = conf[NAME].auth_section or NAME
    conf.register_opts(loading.get_auth_common_conf_options(), group=section)
    name = conf[section].auth_type
    if not name:
        return
    try:
        options = loading.get_auth_plugin_conf_options(name)
    except exceptions.NoMatchingPlugin:
        return
    conf.register_opts(options, group=section)
