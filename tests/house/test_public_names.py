"""Only the fast path of the message bus touches private names of libraries."""

import ast
import functools
from collections import Counter

from tests.house.tree import PACKAGES, module_of, name_of, python_files, syntax_of

FAST_PATH = "scheduler.rpc.fastpath"
"""The one package that may; it probes each name before it uses it."""
PUBLIC = {"_asdict", "_fields", "_mapping", "_replace", "_create_listener", "_process_incoming"}
"""Documented parts of named tuples and of SQLAlchemy's rows; abstract methods of oslo's servers."""
NAMING = dict.fromkeys(("getattr", "setattr", "hasattr", "delattr"), slice(1, 2))
NAMING |= {"attrgetter": slice(None), "methodcaller": slice(1)}
"""Functions that take names of attributes as text, and which of their arguments these are."""


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def is_foreign(name, own, times=1):
    return is_private(name) and own[name] < times and name not in PUBLIC


def definitions(tree):
    """Every name that the code itself gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "twin"):
                yield node.attr
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            inside = (each for each in ast.walk(node.value) if isinstance(each, ast.Constant))
            yield from (str(each.value) for each in inside)


def uses(tree, own):
    """The private names in *tree* that are not its *own*."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
            yield from (f"import {each}" for each in names if is_private(each))
        elif isinstance(node, ast.Import):
            parts = [part for each in node.names for part in each.name.split(".")]
            yield from (f"import {each}" for each in parts if is_private(each))
        elif isinstance(node, ast.Attribute):
            times = 2 if ast.unparse(node.value) == "super()" else 1  # the class's own is another
            if is_foreign(node.attr, own, times):
                yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            named = NAMING.get(ast.unparse(node.func).rpartition(".")[2], slice(0))
            for each in node.args[named]:
                parts = str(each.value).split(".") if isinstance(each, ast.Constant) else ()
                if any(is_foreign(part, own) for part in parts):
                    yield ast.unparse(node)


@functools.cache
def own_names():
    return Counter(name for path in ordinary_files() for name in definitions(syntax_of(path)))


def ordinary_files():
    return [each for each in python_files(*PACKAGES) if not module_of(each).startswith(FAST_PATH)]


def test_private_names_of_libraries_are_left_alone():
    found = [
        f"{name_of(path)}: {each}"
        for path in ordinary_files()
        for each in uses(syntax_of(path), own_names())
    ]
    assert found == []


def test_names_in_texts_are_seen():
    private = ["getattr(x, '_a', 0)", "setattr(x, '_a', 1)", "operator.attrgetter('b', 'c._a')"]
    others = ["getattr(x, name)", "getattr(x, 'a', '_a')", "get('_a')"]
    assert [*uses(ast.parse("\n".join(private + others)), Counter())] == private
