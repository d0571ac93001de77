"""Makes Python find the modules of the table."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import plugins
from scheduler.nova_compat.table import MODULES, Source

LOG = logging.getLogger(__name__)

ROOT = "nova"


def install(conf: cfg.ConfigOpts) -> None:
    """From now on imports of the table's modules succeed in this process, configured by *conf*.

    Nothing is done where a real Nova can be imported, or a second time.
    """
    if any(isinstance(each, NovaFinder) for each in sys.meta_path):
        return
    if importlib.util.find_spec(ROOT) is not None:
        LOG.info("Nova itself is installed: code written for it uses that")
        return
    # Last, so that whatever else there is by such a name is found first.
    sys.meta_path.append(NovaFinder(conf))


class NovaFinder(MetaPathFinder):
    """Finds the modules of *modules* and the packages around them.

    Any other module of Nova's is an ImportError that says so.
    """

    def __init__(self, conf: cfg.ConfigOpts, modules: Mapping[str, Source] = MODULES) -> None:
        self._conf = conf
        self._modules = modules
        self._packages = {
            ".".join(parts[:length])
            for parts in (name.split(".") for name in modules)
            for length in range(1, len(parts))
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module if it is in the table, None if it is not Nova's."""
        del path, target
        if fullname in self._modules or fullname in self._packages:
            source = self._modules.get(fullname, {})
            return ModuleSpec(fullname, NamesLoader(source, self._conf), is_package=True)
        if fullname.partition(".")[0] != ROOT:
            return None
        raise ImportError(
            f"{fullname} is not among what this scheduler provides of Nova "
            "([scheduler] nova_compat_imports; scheduler.nova_compat.table has the list)",
            name=fullname,
        )


class NamesLoader(Loader):
    """Fills a module with the names that its *source* stands for."""

    def __init__(self, source: Source, conf: cfg.ConfigOpts) -> None:
        self._source = source
        self._conf = conf

    def exec_module(self, module: ModuleType) -> None:
        """Put the names in."""
        vars(module).update(self._names())

    def _names(self) -> Mapping[str, Any]:
        if isinstance(self._source, str):
            everything = vars(importlib.import_module(self._source))
            return {k: v for k, v in everything.items() if not k.startswith("_")}
        if isinstance(self._source, Mapping):
            return {name: plugins.import_path(path) for name, path in self._source.items()}
        return self._source(self._conf)
