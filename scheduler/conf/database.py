"""``[api_database]``: where Nova's API tables are, if not in ``[database]``.

``[database]`` itself belongs to oslo.db.  Reference page config, section 7.
"""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup(
    "api_database",
    title="API database",
    help="The database with aggregates, flavors, server groups, build requests and mappings.",
)

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="SQLAlchemy URL of the API database. Unset: its tables are in the database of "
        "[database] connection.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
