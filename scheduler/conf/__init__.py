"""Every option of this project, one module per group (reference page config).

Options carry today's names; the spellings of older releases are their deprecated names, which
gives them the precedence that the page's section 1.2 states.
"""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import (
    claims,
    compute,
    conductor,
    database,
    default,
    explain,
    filter_scheduler,
    metrics,
    metrics_endpoint,
    notifications,
    pci,
    placement,
    rpc,
    scheduler,
    trusted_computing,
    upgrade_levels,
    workarounds,
)

GROUP_MODULES = (
    default,
    compute,
    pci,
    rpc,
    scheduler,
    claims,
    explain,
    placement,
    filter_scheduler,
    metrics,
    metrics_endpoint,
    trusted_computing,
    conductor,
    notifications,
    upgrade_levels,
    workarounds,
    database,
)


def register_all(conf: cfg.ConfigOpts) -> None:
    """Register every option of this project on *conf*, and none of the libraries'."""
    for module in GROUP_MODULES:
        module.register(conf)


def group_names() -> list[str]:
    """The groups that have options of this project; ``DEFAULT`` is one of them."""
    return sorted({getattr(group, "name", str(group)) for group, _options in list_opts()})


def list_opts() -> list[tuple[str | cfg.OptGroup, list[cfg.Opt]]]:
    """Every option of this project by group, for oslo-config-generator."""
    listed: list[tuple[str | cfg.OptGroup, list[cfg.Opt]]] = []
    for module in GROUP_MODULES:
        listed += module.list_opts()
    return listed
