"""Two configurations in one process share nothing."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from scheduler import conf as options


@pytest.mark.parametrize(
    "option",
    [
        pytest.param((group.name, option), id=f"{group.name}.{option.name}")
        for group, listed in options.list_opts()
        if isinstance(group, cfg.OptGroup)
        for option in listed[:1]
    ],
)
def test_an_override_stays_where_it_was_made(option):
    group, opt = option
    one, other = cfg.ConfigOpts(), cfg.ConfigOpts()
    for conf in (one, other):
        options.register_all(conf)
        conf([], default_config_files=[], default_config_dirs=[])

    one.set_override(opt.name, None, group=group)

    assert one[group][opt.dest] is None
    assert other[group][opt.dest] == opt.default
