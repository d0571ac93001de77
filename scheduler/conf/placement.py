"""``[placement]``: where Placement is and how to log in, with the options that Nova has there.

Reference page config, section 8.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from keystoneauth1 import exceptions, loading
from oslo_config import cfg

from scheduler.conf import registration

NAME = "placement"
GROUP = cfg.OptGroup(
    NAME,
    title="Placement",
    help="Where the Placement service is, for `[scheduler] claims = placement`. What else is "
    "needed to log in depends on `auth_type`: `username`, `password`, `project_name`, ... for "
    "`password`, nothing for `none`.",
)

#: Nobody waits longer than its own RPC timeout for an answer.
TIMEOUT_SECONDS = 30
_DEFAULTS = {"timeout": TIMEOUT_SECONDS, "valid_interfaces": ["internal", "public"]}
_DEFAULTS["service_type"] = "placement"


#: How the option is called in Nova 14 to 17.
_OLD_NAMES = {"valid_interfaces": "os_interface", "region_name": "os_region_name"}


def _with_defaults(options: Iterable[cfg.Opt]) -> list[cfg.Opt]:
    own = [copy.deepcopy(each) for each in options]
    for each in own:
        if each.dest in _DEFAULTS:
            each.default = _DEFAULTS[each.dest]
        if each.dest in _OLD_NAMES:
            each.deprecated_opts.append(cfg.DeprecatedOpt(_OLD_NAMES[each.dest], group=NAME))
    return own


OPTIONS: list[cfg.Opt] = _with_defaults(
    [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*; those of ``auth_type`` follow when it is known."""
    registration.register_group(conf, GROUP, OPTIONS)


def register_login(conf: cfg.ConfigOpts) -> None:
    """Register what ``auth_type`` needs, so that changes of it are seen.

    An ``auth_type`` that is unknown is the client's to refuse, where it is used.
    """
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


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
