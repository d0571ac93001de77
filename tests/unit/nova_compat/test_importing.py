"""Code that imports from Nova gets this project's parts, or is told what it cannot have."""

import importlib
import logging
import sys

import pytest
from oslo_config import cfg

from scheduler import errors, filters, nova_compat, objects, weights
from scheduler.drivers import Scheduler
from scheduler.filters.ram_filter import RamFilter
from scheduler.hosts.host_manager import HostManager
from scheduler.nova_compat import MODULES, NovaFinder
from scheduler.rpc.context import RequestContext
from tests.builders import a_conf

#: Module, name, what it is here.
ROWS = [
    ("nova.scheduler.filters", "all_filters", filters.all_filters),
    ("nova.scheduler.weights", "BaseHostWeigher", weights.BaseHostWeigher),
    ("nova.scheduler.driver", "Scheduler", Scheduler),
    ("nova.scheduler.host_manager", "HostManager", HostManager),
    ("nova.filters", "BaseFilter", filters.BaseHostFilter),
    ("nova.weights", "BaseWeigher", weights.BaseHostWeigher),
    ("nova.exception", "NoValidHost", errors.NoValidHost),
    ("nova.objects", "RequestSpec", objects.RequestSpec),
    ("nova.context", "RequestContext", RequestContext),
    ("nova.conf", "CONF", cfg.CONF),
]


@pytest.mark.parametrize(("module", "name", "thing"), ROWS)
@pytest.mark.usefixtures("installed")
def test_names_are_this_projects_parts(module, name, thing):
    assert getattr(importlib.import_module(module), name) is thing


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.usefixtures("installed")
def test_every_module_of_the_table_loads(module):
    assert [name for name in vars(importlib.import_module(module)) if not name.startswith("__")]


STATEMENTS = """
import nova.conf
import nova.scheduler.filters
from nova import context, exception, objects
from nova.compute import rpcapi as compute_rpcapi
from nova.i18n import _, _LC, _LE, _LI, _LW
from nova.openstack.common import log as logging
from nova.openstack.common.gettextutils import _ as also_
from nova.scheduler import driver, filters, host_manager, weights
from nova.scheduler.filters import ram_filter, utils
from nova.scheduler.weights import ram
from oslo.config import cfg, types

LOG = logging.getLogger("somebody.elses")
LOG.audit(_("chosen: %s"), "h1")
LOG.warn(also_("not chosen"))


class Theirs(nova.scheduler.filters.BaseHostFilter):
    pass
"""


@pytest.mark.usefixtures("installed")
def test_the_ways_in_which_code_imports(caplog):
    caplog.set_level(logging.INFO)
    names = {}
    exec(STATEMENTS, names)
    assert issubclass(names["Theirs"], filters.BaseHostFilter)
    assert names["ram_filter"].RamFilter is RamFilter
    assert names["cfg"].CONF is cfg.CONF
    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert logged == [("INFO", "chosen: h1"), ("WARNING", "not chosen")]


@pytest.mark.parametrize(
    "statement",
    [
        "import nova.db",
        "from nova import db",
        "import nova.virt.libvirt",
        "from nova.scheduler.filters import no_such_filter",
        "from nova.objects import fields",
        "from nova.exception import NoSuchException",
    ],
)
@pytest.mark.usefixtures("installed")
def test_what_is_not_provided_says_so(statement):
    wanted = r"is not among what this scheduler provides of Nova .*nova_compat_imports"
    with pytest.raises(ImportError, match=wanted):
        exec(statement)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("module", ["oslo.messaging", "novel"])
def test_other_imports_fail_as_ever(module):
    with pytest.raises(ModuleNotFoundError, match=f"No module named '{module}'"):
        importlib.import_module(module)


@pytest.mark.usefixtures("clean_imports")
def test_nothing_is_found_unless_it_is_installed_and_that_once(conf):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nova.scheduler.filters")
    for _ in range(2):
        nova_compat.install(conf)
    assert len([each for each in sys.meta_path if isinstance(each, NovaFinder)]) == 1


@pytest.mark.usefixtures("clean_imports")
def test_a_real_nova_is_left_alone(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "nova").mkdir()
    (tmp_path / "nova" / "__init__.py").write_text("REAL = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    nova_compat.install(a_conf())
    assert importlib.import_module("nova").REAL
    assert not [each for each in sys.meta_path if isinstance(each, NovaFinder)]
    assert [record.getMessage() for record in caplog.records] == [
        "Nova itself is installed: code written for it uses that"
    ]
