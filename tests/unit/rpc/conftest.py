"""The bus inside this process."""

import pytest
from oslo_config import cfg

from scheduler.rpc import transport as bus
from tests.process_options import on_in_process_bus


@pytest.fixture
def conf(tmp_path):
    """The process-wide options, with the in-process bus."""
    yield on_in_process_bus(tmp_path)
    for interface in ("scheduler", "baseapi"):
        cfg.CONF.clear_override(interface, group="upgrade_levels")
    cfg.CONF.reset()


@pytest.fixture
def transport(conf):
    """The bus inside this process, for callers."""
    return bus.get_transport(conf)
