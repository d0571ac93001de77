"""The process-wide options, which the RPC library insists on, set to the in-process bus.

By a file: an override, once cleared, still counts as configured, and a default outlives a reset.
"""

import configparser
import pathlib
from collections.abc import Mapping

from oslo_config import cfg

from scheduler import conf as project_options


def on_in_process_bus(
    folder: pathlib.Path, sections: Mapping[str, Mapping[str, str]] | None = None, **options: str
) -> cfg.ConfigOpts:
    """Parse a file in *folder* with the in-process bus, *options* of ``[DEFAULT]``, *sections*."""
    everything = {"DEFAULT": {"transport_url": "fake://", **options}, **(sections or {})}
    parser = configparser.RawConfigParser()
    parser.read_dict(everything)
    file = folder / "nova.conf"
    with file.open("w", encoding="utf-8") as out:
        parser.write(out)
    project_options.register_all(cfg.CONF)
    cfg.CONF(["--config-file", str(file)], project="nova", default_config_dirs=[])
    return cfg.CONF
