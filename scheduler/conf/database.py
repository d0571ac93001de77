"""``[database]``: oslo.db's own options, with the spellings that its older releases had.

The current oslo.db forgot them, so ``idle_timeout = 9`` of an old file would be without effect
and without a message (reference page config, section 7).
"""

from __future__ import annotations

import copy

from oslo_config import cfg
from oslo_db import options as oslo_db_options

GROUP = "database"

#: The name of today, and (group, name) of each old spelling.
OLD_SPELLINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "connection": (("DEFAULT", "sql_connection"), (GROUP, "sql_connection"), ("sql", "connection")),
    "connection_recycle_time": (
        (GROUP, "idle_timeout"),
        ("DEFAULT", "sql_idle_timeout"),
        (GROUP, "sql_idle_timeout"),
        ("sql", "idle_timeout"),
    ),
    "max_pool_size": (("DEFAULT", "sql_max_pool_size"), (GROUP, "sql_max_pool_size")),
    "max_overflow": (("DEFAULT", "sql_max_overflow"), (GROUP, "sqlalchemy_max_overflow")),
    "pool_timeout": ((GROUP, "sqlalchemy_pool_timeout"),),
    "max_retries": (("DEFAULT", "sql_max_retries"), (GROUP, "sql_max_retries")),
    "retry_interval": (("DEFAULT", "sql_retry_interval"), (GROUP, "reconnect_interval")),
    "connection_debug": (("DEFAULT", "sql_connection_debug"),),
    "connection_trace": (("DEFAULT", "sql_connection_trace"),),
    "sqlite_synchronous": (("DEFAULT", "sqlite_synchronous"),),
    "backend": (("DEFAULT", "db_backend"),),
}


def options() -> list[cfg.Opt]:
    """The library's options, each with its old spellings added."""
    return [_with_old_spellings(option) for option in oslo_db_options.database_opts]


def _with_old_spellings(option: cfg.Opt) -> cfg.Opt:
    extended = copy.deepcopy(option)
    extended.deprecated_opts += [
        cfg.DeprecatedOpt(name, group=group) for group, name in OLD_SPELLINGS.get(option.name, ())
    ]
    return extended


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    conf.register_opts(options(), group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, options())]
