"""Nova's modules for one test, and none of them left behind."""

import sys

import pytest

from scheduler import nova_compat
from tests.builders import a_conf

ROOTS = ("nova", "oslo")


@pytest.fixture
def conf():
    """What the modules are configured by; a test may change it before it imports them."""
    return a_conf()


@pytest.fixture
def installed(conf, clean_imports):
    """Nova's modules can be imported."""
    nova_compat.install(conf)


@pytest.fixture
def clean_imports():
    """Whatever the test makes importable or imports is forgotten with it."""
    finders, modules = list(sys.meta_path), set(sys.modules)
    yield
    sys.meta_path[:] = finders
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ROOTS:
            del sys.modules[name]
