"""The options of this project, and reading, checking and showing a configuration.

Options carry today's names; the spellings of older releases are their deprecated names, which
gives them the precedence that section 1.2 of the reference page config states.
``startup`` reads, ``check`` refuses bad values, ``rereading`` finds the changes of a reload,
``names`` and ``effective`` serve ``config``; the rest are the options, by group.
From the database up every room may import this package, except the engine.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg

from scheduler.conf import (
    claims,
    database,
    default,
    filter_scheduler,
    names,
    observation,
    scheduler,
)

#: Every group with its options, in the order of the page of options.
SECTIONS: list[tuple[str | cfg.OptGroup, list[cfg.Opt]]] = [
    ("DEFAULT", [*default.OPTIONS, *default.STUBS_OPTIONS]),
    (default.COMPUTE, default.COMPUTE_OPTIONS),
    (default.PCI, default.PCI_OPTIONS),
    (scheduler.GROUP, scheduler.OPTIONS),
    (claims.CLAIMS, claims.CLAIMS_OPTIONS),
    (observation.EXPLAIN, observation.EXPLAIN_OPTIONS),
    (observation.RECORDING, observation.RECORDING_OPTIONS),
    (claims.PLACEMENT, claims.PLACEMENT_OPTIONS),
    (claims.NEUTRON, claims.NEUTRON_OPTIONS),
    (filter_scheduler.GROUP, filter_scheduler.OPTIONS),
    (filter_scheduler.METRICS, filter_scheduler.METRICS_OPTIONS),
    (observation.METRICS_ENDPOINT, observation.METRICS_ENDPOINT_OPTIONS),
    (filter_scheduler.TRUSTED_COMPUTING, filter_scheduler.TRUSTED_COMPUTING_OPTIONS),
    (default.CONDUCTOR, default.CONDUCTOR_OPTIONS),
    (observation.NOTIFICATIONS, observation.NOTIFICATIONS_OPTIONS),
    (default.UPGRADE_LEVELS, default.UPGRADE_LEVELS_OPTIONS),
    (claims.WORKAROUNDS, claims.WORKAROUNDS_OPTIONS),
    (database.GROUP, database.OPTIONS),
    (database.API_GROUP, database.API_OPTIONS),
]
_OF_DEFAULT = (
    *("service_down_time", "default_availability_zone"),
    *(f"{i}{each}_allocation_ratio" for i in ("", "initial_") for each in ("cpu", "ram", "disk")),
)
_OF_DECISIONS: dict[str, list[cfg.Opt]] = {
    "filter_scheduler": filter_scheduler.OPTIONS,
    "metrics": filter_scheduler.METRICS_OPTIONS,
    "compute": default.COMPUTE_OPTIONS,
    "scheduler": [each for each in scheduler.OPTIONS if each.name in ("max_attempts", "semantics")],
    names.DEFAULT: [each for each in default.OPTIONS if each.name in _OF_DEFAULT],
}
#: Options that a decision reads: they are recorded, and can be tried with another value.
DECISION_OPTIONS: dict[names.Name, cfg.Opt] = {
    (group, each.dest): each for group, several in _OF_DECISIONS.items() for each in several
}


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register every option of this project on *conf*, and none of the libraries'."""
    for group, options in SECTIONS:
        if isinstance(group, cfg.OptGroup):
            # A group object holds its options with their overrides: each configuration needs one.
            conf.register_group(copy.deepcopy(group))
        conf.register_opts(options, group=names.section(str(group)))


def detached(
    values: Mapping[names.Name, Any] | None = None, files: Sequence[str] = ()
) -> cfg.ConfigOpts:
    """A configuration of its own: defaults, *files*, then *values*."""
    conf = cfg.ConfigOpts()
    register_all(conf)
    conf([], default_config_files=list(files), default_config_dirs=[])
    for (group, name), value in (values or {}).items():
        conf.set_override(name, value, group=names.section(group))
    return conf


def list_opts() -> list[tuple[str | cfg.OptGroup, list[cfg.Opt]]]:
    """Every option of this project by group, for oslo-config-generator."""
    return SECTIONS
