"""Registering an option group so that two configurations in one process stay apart."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from oslo_config import cfg


def register_group(conf: cfg.ConfigOpts, group: cfg.OptGroup, options: Sequence[cfg.Opt]) -> None:
    """Register *options* under *group* on *conf*.

    A group object holds the options registered under it, with their overrides, and ConfigOpts
    takes a shallow copy: two of them given the same object would share all that.
    """
    conf.register_group(copy.deepcopy(group))
    conf.register_opts(options, group=group.name)
