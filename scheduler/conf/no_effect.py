"""Options of Nova that would change what the scheduler does, and have no effect here.

Whoever sets one is told so, once; the many that a scheduler never had are ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_MANAGERS: Final = ("nova.scheduler.manager.SchedulerManager",)


@dataclass(frozen=True)
class NoEffect:
    """An option of *group*, when its value would mean something, and what to do instead."""

    group: str
    option: cfg.Opt
    would_count: Callable[[Any], bool]
    instead: str


def _help(instead: str) -> str:
    return f"No effect; {instead}"


def _switch(group: str, name: str, instead: str) -> NoEffect:
    return NoEffect(group, cfg.BoolOpt(name, default=False, help=_help(instead)), bool, instead)


_DISCOVER = "map new hosts with nova-manage cell_v2 discover_hosts, or by another nova-scheduler"
_CONDUCTOR = "conductor"
_TOPIC = "conductors are asked on the topic conductor"
_MANAGER = "the manager is always this project's"

OPTIONS: Final = (
    _switch("cells", "enable", "cells of the first version are not known here"),
    _switch("DEFAULT", "monkey_patch", "functions are not wrapped"),
    _switch("filter_scheduler", "pci_in_placement", "PciPassthroughFilter looks at devices"),
    _switch(
        "scheduler",
        "query_placement_for_routed_network_aggregates",
        "Placement is not asked for the segments of networks",
    ),
    _switch(
        "scheduler",
        "image_metadata_prefilter",
        "Placement is not asked for traits of images; ImagePropertiesFilter looks at them",
    ),
    NoEffect(
        "scheduler",
        cfg.IntOpt("discover_hosts_in_cells_interval", default=-1, help=_help(_DISCOVER)),
        lambda seconds: seconds >= 0,
        _DISCOVER,
    ),
    NoEffect(
        "conductor",
        cfg.StrOpt("topic", default=_CONDUCTOR, help=_help(_TOPIC)),
        lambda topic: topic != _CONDUCTOR,
        _TOPIC,
    ),
    NoEffect(
        "DEFAULT",
        cfg.StrOpt("scheduler_manager", help=_help(_MANAGER)),
        lambda path: bool(path) and path not in _MANAGERS,
        _MANAGER,
    ),
)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options on *conf*."""
    for each in OPTIONS:
        conf.register_opt(each.option, group=None if each.group == "DEFAULT" else each.group)


def warn(conf: cfg.ConfigOpts) -> None:
    """One line for each that is set to something that counts in Nova."""
    for each in OPTIONS:
        name = each.option.dest
        value = conf[name] if each.group == "DEFAULT" else conf[each.group][name]
        if each.would_count(value):
            LOG.warning("Option [%s] %s has no effect here: %s.", each.group, name, each.instead)
