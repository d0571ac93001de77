"""Nothing grows too big, and names say what is inside."""

import ast
import inspect

from scheduler.filters import all_filters
from tests.house.tree import CODE, name_of, python_files, syntax_of

FILE_LINES = 400
FUNCTION_LINES = 40
FILTER_LINES = 60
NAMES_THAT_SAY_NOTHING = {"utils", "common", "helpers", "misc"}


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path):
    for node in ast.walk(syntax_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_file_is_too_long():
    sizes = {name_of(path): lines(path) for path in python_files(*CODE)}
    assert {name: size for name, size in sizes.items() if size > FILE_LINES} == {}


def test_no_function_is_too_long():
    sizes = {
        f"{name_of(path)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in python_files(*CODE)
        for node in functions(path)
    }
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES} == {}


def test_no_filter_is_too_long():
    sizes = {each.__name__: len(inspect.getsource(each).splitlines()) for each in all_filters()}
    assert {name: size for name, size in sizes.items() if size > FILTER_LINES} == {}


def test_every_name_says_what_is_inside():
    named = [path for path in python_files(*CODE) if NAMES_THAT_SAY_NOTHING & {*path.parts}]
    named += [path for path in python_files(*CODE) if path.stem in NAMES_THAT_SAY_NOTHING]
    assert [name_of(path) for path in named] == []
