"""``[database]``: oslo.db's own options, with the spellings that its older releases had.

The current oslo.db forgot them, so ``idle_timeout = 9`` of an old file would be without effect
and without a message (reference page config, section 7).
"""

from __future__ import annotations

import copy
from typing import Any

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

#: Passed to oslo.db's ``create_engine`` as they are.
ENGINE_OPTIONS = (
    "sqlite_synchronous",
    "mysql_sql_mode",
    "mysql_wsrep_sync_wait",
    "connection_recycle_time",
    "connection_debug",
    "connection_trace",
    "max_pool_size",
    "max_overflow",
    "pool_timeout",
    "max_retries",
    "retry_interval",
)

#: Passed to oslo.db's ``wrap_db_retry``, under the name on the right.
RETRY_OPTIONS = {
    "db_max_retries": "max_retries",
    "db_retry_interval": "retry_interval",
    "db_inc_retry_interval": "inc_retry_interval",
    "db_max_retry_interval": "max_retry_interval",
}


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group on *conf*; a second time is without effect."""
    conf.register_opts([_with_old_spellings(opt) for opt in oslo_db_options.database_opts], GROUP)


def _with_old_spellings(opt: cfg.Opt) -> cfg.Opt:
    extended = copy.deepcopy(opt)
    extended.deprecated_opts += [
        cfg.DeprecatedOpt(name, group=group) for group, name in OLD_SPELLINGS.get(opt.name, ())
    ]
    return extended


def defaults() -> dict[str, Any]:
    """What ``[database]`` holds when nothing is configured."""
    return {opt.name: opt.default for opt in oslo_db_options.database_opts}


def configured(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """What *conf* says under ``[database]``, by today's names."""
    return {opt.name: conf[GROUP][opt.name] for opt in oslo_db_options.database_opts}
