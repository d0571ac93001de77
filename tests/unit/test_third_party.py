"""A filter, weigher, driver or host manager of somebody else's: one class and one line."""

import sys

import pytest

from scheduler import errors, plugins
from scheduler.drivers import loading
from scheduler.filters.registry import load_filters
from scheduler.weights.registry import load_weighers
from tests.builders import a_conf

pytestmark = pytest.mark.slow

MODULE = """
from scheduler.drivers import Scheduler
from scheduler.filters import BaseHostFilter
from scheduler.hosts.host_manager import HostManager
from scheduler.weights import BaseHostWeigher


class EvenNodes(BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return int(host_state.nodename[1:]) % 2 == 0


class Fewest(BaseHostWeigher):
    def weight_multiplier(self):
        return -2.0

    def _weigh_object(self, host_state, weight_properties):
        return host_state.num_instances


class First(Scheduler):
    def select_destinations(self, context, spec_obj, instance_uuids, **rest):
        return []


class Shelf(HostManager):
    pass


class NotOne:
    refresh = None
"""
ENTRY_POINTS = """
[nova.scheduler.filters]
even_nodes = acme_scheduling:EvenNodes
broken = acme_scheduling:NoSuchThing
not_one = acme_scheduling:NotOne

[nova.scheduler.weights]
fewest = acme_scheduling:Fewest
broken = acme_no_such_module:Fewest

[nova.scheduler.driver]
first = acme_scheduling:First
broken = acme_no_such_module:First

[nova.scheduler.host_manager]
shelf = acme_scheduling:Shelf
"""


@pytest.fixture(autouse=True)
def acme(tmp_path, monkeypatch):
    """An installed distribution of somebody else's."""
    (tmp_path / "acme_scheduling.py").write_text(MODULE)
    info = tmp_path / "acme_scheduling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-scheduling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()
    sys.modules.pop("acme_scheduling", None)


def configured(tmp_path, lines):
    """The options with these lines in their file."""
    file = tmp_path / "nova.conf"
    file.write_text(lines)
    conf = a_conf()
    conf(["--config-file", str(file)], default_config_dirs=[])
    return conf


FILTER = "[filter_scheduler]\nenabled_filters = "
AVAILABLE = """available_filters = nova.scheduler.filters.all_filters
available_filters = acme_scheduling.EvenNodes
"""
WEIGHER, DRIVER = "[filter_scheduler]\nweight_classes = ", "[scheduler]\ndriver = "
HOST_MANAGER = "[scheduler]\nhost_manager = "
ANY = None


def load_driver(conf):
    return [loading.load(conf, ANY)]


def load_host_manager(conf):
    return [loading.load_host_manager(conf, ANY)]


@pytest.mark.parametrize(
    ("lines", "load", "name"),
    [
        (f"{FILTER}AllHostsFilter, even_nodes", load_filters, "EvenNodes"),
        (f"{FILTER}EvenNodes\n{AVAILABLE}", load_filters, "EvenNodes"),
        (f"{WEIGHER}acme_scheduling.Fewest", load_weighers, "Fewest"),
        (f"{WEIGHER}fewest", load_weighers, "Fewest"),
        (f"{DRIVER}acme_scheduling.First", load_driver, "First"),
        (f"{DRIVER}first", load_driver, "First"),
        (f"{HOST_MANAGER}acme_scheduling.Shelf", load_host_manager, "Shelf"),
        (f"{HOST_MANAGER}shelf", load_host_manager, "Shelf"),
    ],
)
def test_a_class_is_found_by_its_path_or_entry_point(tmp_path, lines, load, name):
    [*_others, found] = load(configured(tmp_path, lines))
    assert (type(found).__name__, type(found).__module__) == (name, "acme_scheduling")


UNUSABLE, NO_CLASS = errors.ConfigurationError, errors.ClassNotFound
NO_FILTER = errors.SchedulerHostFilterNotFound


@pytest.mark.parametrize(
    ("lines", "load", "error", "message"),
    [
        (f"{FILTER}broken", load_filters, UNUSABLE, "enabled_filters: 'broken': "),
        (f"{FILTER}not_one", load_filters, NO_CLASS, "Class not_one could not be found"),
        (f"{FILTER}odd_nodes", load_filters, NO_FILTER, "Filter odd_nodes could not be found"),
        (f"{WEIGHER}broken", load_weighers, UNUSABLE, "'broken': No module named"),
        (f"{WEIGHER}most", load_weighers, UNUSABLE, "weight_classes: 'most'"),
        (f"{DRIVER}broken", loading.driver_class, UNUSABLE, "acme_no_such_module"),
        (
            f"{DRIVER}acme_scheduling.NotOne",
            *(loading.driver_class, UNUSABLE),
            "is not a class with a method select_destinations",
        ),
        (f"{HOST_MANAGER}acme_scheduling.NotOne", load_host_manager, UNUSABLE, "is not derived"),
    ],
)
def test_mistakes(tmp_path, lines, load, error, message):
    with pytest.raises(error, match=message):
        load(configured(tmp_path, lines))


# --- files in the folder of site extensions -----------------------------------------------------


@pytest.fixture
def site(tmp_path, monkeypatch):
    """That folder, which is not among the places where Python looks."""
    folder = tmp_path / "scheduler.d"
    folder.mkdir()
    (folder / "site_plugins.py").write_text(f"import site_names\n{MODULE}")
    (folder / "site_names.py").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def on_site(site, lines):
    conf = configured(site.parent, lines)
    conf.set_override("extensions_directory", str(site), group="filter_scheduler")
    return conf


@pytest.mark.parametrize(
    ("lines", "load", "name"),
    [
        (FILTER, load_filters, "EvenNodes"),
        (WEIGHER, load_weighers, "Fewest"),
        (DRIVER, load_driver, "First"),
        (HOST_MANAGER, load_host_manager, "Shelf"),
    ],
)
def test_a_class_in_the_folder_is_found_by_its_name(site, lines, load, name):
    (site / "a_broken_one.py").write_text("1 / 0")
    [found] = load(on_site(site, lines + name))
    assert (type(found).__name__, type(found).__module__) == (name, "site_plugins")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("site_broken.py", "1 / 0", r"site_broken.py: ZeroDivisionError: division by zero"),
        ("site_wrong.py", "import no_such_module", r"site_wrong.py: ModuleNotFoundError: No mod"),
        ("json.py", "", r"json.py: ImportError: another module has this name; rename the file"),
        ("site_other.py", "class Mine:\n    pass", "Host Filter Mine could not be found"),
    ],
)
def test_a_class_that_the_folder_has_not(site, file, text, message):
    (site / file).write_text(text)
    with pytest.raises(errors.NovaException, match=message):
        load_filters(on_site(site, f"{FILTER}Mine"))


def test_a_file_that_was_mended_is_read_again(site):
    file = site / "site_late.py"
    conf = on_site(site, f"{FILTER}Late")
    file.write_text("class Late(")
    with pytest.raises(errors.ConfigurationError, match=r"site_late.py: SyntaxError"):
        load_filters(conf)
    file.write_text(MODULE.replace("EvenNodes", "Late"))
    [found] = load_filters(conf)
    assert found.name == "Late"
