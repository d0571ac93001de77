"""Nova's functional tests: the list of what runs, or not, names all that Nova has."""

import fnmatch

from tests.nova_functional import results
from tests.nova_functional.__main__ import HERE


def test_each_module_runs_or_is_left_out_with_a_reason(nova_python):
    (folder,) = nova_python.parents[1].glob("lib/python*/site-packages/nova/tests/functional")
    every = {
        ".".join(each.relative_to(folder).with_suffix("").parts)
        for each in folder.rglob("test_*.py")
    }
    running = results.modules(HERE / "modules.txt")
    listed = {each for each in every if any(_is_part(each, name) for name in running)}
    patterns = results.left_out(HERE / "modules.txt")
    left = {each for each in every for one in patterns if fnmatch.fnmatchcase(each, one)}
    assert every - listed - left == set()
    unknown = [name for name in running if not any(_is_part(each, name) for each in every)]
    assert unknown == []
    assert all(patterns.values())


def _is_part(module, name):
    """True when *module* is *name*, below that package, or has that class."""
    return f"{module}.".startswith(f"{name}.") or name.startswith(f"{module}.")
