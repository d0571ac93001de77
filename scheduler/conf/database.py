"""``[database]``, ``[api_database]``: oslo.db's options, with the spellings of its older releases.

The current oslo.db forgot them, so ``idle_timeout = 9`` of an old file would be without effect
and without a message (reference page config, section 7).
"""

import copy

from oslo_config import cfg
from oslo_db import options as oslo_db_options

GROUP = "database"
API_GROUP = "api_database"

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


def _with_old_spellings(option: cfg.Opt, group: str) -> cfg.Opt:
    """*option* of *group*; only ``[database]`` has spellings in other groups."""
    extended = copy.deepcopy(option)
    old = OLD_SPELLINGS.get(option.name, ())
    extended.deprecated_opts += [
        cfg.DeprecatedOpt(name, group=group if its_group == GROUP else its_group)
        for its_group, name in old
        if group == GROUP or its_group == GROUP
    ]
    if group == API_GROUP and option.name == "connection":
        extended.help = (
            "The database with the aggregates, server groups, flavors, build requests and cell "
            "mappings, if it is another one than that of [database]: Nova's API database."
        )
    return extended


OPTIONS: list[cfg.Opt] = [
    *(_with_old_spellings(each, GROUP) for each in oslo_db_options.database_opts),
    cfg.BoolOpt(
        "read_only",
        default=False,
        help="Write nothing at all, not even this service's own row in the table `services`: an "
        "account that may only read is enough then. Nova's service list does not show this "
        "scheduler.",
    ),
    cfg.IntOpt(
        "silence_timeout_seconds",
        default=60,
        min=0,
        help="Seconds after which the daemons give up a server that does not answer, as after a "
        "network failure; they reconnect, and meanwhile use the last state. It must be longer than "
        "any wait for a lock. 0: wait for ever, as the commands do.",
    ),
]
API_OPTIONS: list[cfg.Opt] = [
    _with_old_spellings(each, API_GROUP) for each in oslo_db_options.database_opts
]
