"""setup.cfg, the constraints and the code agree."""

import configparser
import functools
import importlib.metadata
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import scheduler
from tests.house.tree import CODE, ELSEWHERE, PACKAGES, ROOT, files, imports_of, python_files

DISTRIBUTION = "nova-scheduler-standalone"
#: Run as programs, not imported.
TOOLS = {
    "bandit",
    "build",
    "coverage",
    "mypy",
    "pip-audit",
    "ruff",
    "setuptools",
    "sphinx",
    "towncrier",
    "myst-parser",
    "types-pyyaml",
}
#: Loaded by name: by pytest, SQLAlchemy, oslo.log, oslo.messaging or scheduler.concurrency.
PLUGINS = {
    *("eventlet", "psycopg", "systemd-python"),
    *("opentelemetry-api", "opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"),
    *("pytest-randomly", "pytest-timeout", "pytest-xdist"),
}

#: The one that is imported of several distributions with one top-level package.
SHARED = {"opentelemetry": "opentelemetry-proto"}

#: Modules that only those have who installed an extra that the checks do without.
ONLY_WITH_EXTRA = {"atheris": ["atheris"]}


def setup_cfg():
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def requirements(extra=None):
    """What setup.cfg asks for: by the packages, or by *extra*."""
    parser = setup_cfg()
    text = (
        parser["options.extras_require"][extra] if extra else parser["options"]["install_requires"]
    )
    asked = [Requirement(line) for line in text.split("\n") if line]
    return {canonicalize_name(each.name): each for each in asked}


def extras():
    return list(setup_cfg()["options.extras_require"])


def all_requirements():
    together = requirements()
    for extra in extras():
        together |= requirements(extra)
    return together


def pins():
    """The exact versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def entry_points():
    return [
        importlib.metadata.EntryPoint(name.strip(), value.strip(), group)
        for group, text in setup_cfg()["options.entry_points"].items()
        for name, value in (line.split("=") for line in text.split("\n") if line)
    ]


@pytest.mark.parametrize("entry_point", entry_points(), ids=lambda point: point.name)
def test_every_entry_point_leads_somewhere(entry_point):
    assert callable(entry_point.load())


@pytest.mark.parametrize("group", ["nova.scheduler.driver", "nova.scheduler.host_manager"])
def test_what_is_installed_is_what_is_declared(group):
    declared = {(point.name, point.value) for point in entry_points() if point.group == group}
    installed = {
        (point.name, point.value)
        for point in importlib.metadata.distribution(DISTRIBUTION).entry_points
        if point.group == group
    }
    assert declared
    assert installed == declared


def test_every_file_that_setup_cfg_names_exists():
    metadata = setup_cfg()["metadata"]
    for name in (metadata["long_description"].split()[1], metadata["license_files"]):
        assert (ROOT / name).is_file()


@pytest.fixture(scope="module")
def clean_copy(tmp_path_factory):
    """The project's files alone: what a build leaves behind would be packed by the next one."""
    copy = tmp_path_factory.mktemp("copy")
    for path in files():
        (copy / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy / path.relative_to(ROOT))
    return copy


@pytest.fixture(scope="module")
def built(clean_copy, tmp_path_factory):
    """The sdist, and the wheel that is made of it; nothing of ours is complained of."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run(command, cwd=clean_copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for complaint in ("is absent from the `packages` configuration", "warning: no "):
        assert complaint not in done.stdout + done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_the_source_distribution_is_the_whole_tree(built):
    with tarfile.open(built["sdist"]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {str(path.relative_to(ROOT)) for path in files()} - packed == set()


def test_the_wheel_has_every_file_of_the_packages(built):
    with zipfile.ZipFile(built["wheel"]) as archive:
        packed = set(archive.namelist())
    names = {str(path.relative_to(ROOT)) for path in files()}
    assert {name for name in names if name.split("/")[0] in PACKAGES} - packed == set()
    assert not {name for name in packed if name.startswith("tests/")}


def test_what_was_built_installs_and_runs_the_demo(built, tmp_path):
    """In an environment that borrows the dependencies of this one, so that nothing is fetched."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    python = str(folder / "bin/python")
    (site,) = folder.glob("lib/python*/site-packages")
    borrowed = "\n".join(entry for entry in sys.path if entry.endswith("site-packages"))
    (site / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")

    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
    run(*pip, "--no-deps", "--no-build-isolation", "--ignore-installed", str(built["wheel"]))
    where = run(python, "-c", "import scheduler; print(scheduler.__file__)", cwd=tmp_path)
    assert where.startswith(str(site))
    version = run(str(folder / "bin/nova-scheduler"), "--version", cwd=tmp_path)
    assert version.strip() == scheduler.__version__
    assert run(python, "-m", "conductor_stub.demo", cwd=tmp_path).count("✔") == 7

    root = tmp_path / "root"
    printed = run(str(folder / "bin/nova-scheduler-manage"), "install-files", "--root", str(root))
    assert printed.count("installed ") == len(printed.splitlines()) == 18
    unit = (root / "usr/local/lib/systemd/system/nova-scheduler.service").read_text()
    assert f"ExecStart={folder}/bin/nova-scheduler --config-file=/etc/nova/nova.conf\n" in unit


def run(*command, cwd=ROOT):
    """What a *command* prints; it must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_requirement_has_a_lower_bound_and_a_pin_within_its_bounds():
    wrong = [
        str(asked)
        for name, asked in all_requirements().items()
        if name not in pins()
        or not asked.specifier.contains(pins()[name], prereleases=True)
        or all(bound.operator != ">=" for bound in asked.specifier)
    ]
    assert wrong == []


@functools.cache
def installed():
    """The distributions that bring each top-level module; it takes seconds to find out."""
    return importlib.metadata.packages_distributions()


def imported_distributions(*folders):
    """The distributions that bring the modules that files below *folders* import."""
    providers = {**ONLY_WITH_EXTRA, **installed()}
    own = {*CODE, "__future__", *sys.stdlib_module_names}
    here = [path for path in python_files(*folders) if not any(map(path.is_relative_to, ELSEWHERE))]
    modules = {name for path in here for name in imports_of(path)}
    found = set()
    for module in modules:
        top = module.split(".")[0]
        if top in SHARED:
            found.add(SHARED[top])
        elif top not in own:
            assert top in providers, f"{module} is not installed"
            found |= {canonicalize_name(name) for name in providers[top]}
    return found


@pytest.mark.parametrize(
    ("folders", "extras"),
    [(PACKAGES, ()), (("tests", "benchmarks", "manual"), ("test", "fuzz"))],
    ids=["packages", "tests"],
)
def test_what_is_imported_is_declared(folders, extras):
    declared = requirements().keys() | {name for each in extras for name in requirements(each)}
    assert imported_distributions(*folders) - declared == set()


def test_what_is_declared_is_used():
    used = imported_distributions(*CODE) | TOOLS | PLUGINS
    assert all_requirements().keys() - used == set()
