"""What the engine takes from ``[database]`` (its options: :mod:`scheduler.conf.database`)."""

from __future__ import annotations

from typing import Any

from oslo_config import cfg
from oslo_db import options as oslo_db_options

from scheduler.conf.database import GROUP

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


def defaults() -> dict[str, Any]:
    """What ``[database]`` holds when nothing is configured."""
    return {opt.name: opt.default for opt in oslo_db_options.database_opts}


def configured(conf: cfg.ConfigOpts, group: str = GROUP) -> dict[str, Any]:
    """What *conf* says under ``[database]``, or another *group* alike, by today's names."""
    return {opt.name: conf[group][opt.name] for opt in oslo_db_options.database_opts}
