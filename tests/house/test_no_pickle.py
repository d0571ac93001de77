"""Nothing that is read can run code: no pickles and their like, no code from text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.tree import PACKAGES, imports_of, name_of, python_files, syntax_of

UNSAFE_MODULES = frozenset(
    {
        *("pickle", "cPickle", "_pickle", "marshal", "shelve", "copyreg", "code", "codeop"),
        *("dill", "cloudpickle", "jsonpickle", "joblib"),
    }
)
UNSAFE_CALLS = frozenset(
    {
        *("eval", "exec", "compile", "__import__"),
        *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.full_load_all", "yaml.unsafe_load"),
    }
)
UNSAFE_ARGUMENTS = frozenset({"allow_pickle", "shell"})


def complaints_of(tree: ast.AST) -> Iterator[str]:
    """What a syntax tree has that can run what it reads."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if ast.unparse(node.func) in UNSAFE_CALLS:
            yield f"{node.lineno}: {ast.unparse(node.func)}()"
        for argument in node.keywords:
            is_false = isinstance(argument.value, ast.Constant) and argument.value.value is False
            if argument.arg in UNSAFE_ARGUMENTS and not is_false:
                yield f"{node.lineno}: {argument.arg}="


def test_nothing_that_is_read_can_run_code() -> None:
    found = [
        (name_of(path), what)
        for path in python_files(*PACKAGES)
        for what in (
            *(name for name in imports_of(path) if UNSAFE_MODULES & set(name.split("."))),
            *complaints_of(syntax_of(path)),
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "eval(text)",
        "exec('1')",
        "yaml.load(text, Loader=yaml.Loader)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
    ],
)
def test_what_would_be_found(text: str) -> None:
    assert list(complaints_of(ast.parse(text)))
