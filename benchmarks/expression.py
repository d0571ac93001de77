"""Quantities made of measurements: ``columns.rate / rows.rate``, worked out round by round."""

import ast
import operator
import statistics
from collections.abc import Callable, Mapping, Sequence

#: Per subject and metric, one value per round.
Measured = Mapping[str, Mapping[str, Sequence[float]]]

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def subjects(text: str) -> set[str]:
    """The subjects that the expression *text* names; ValueError if it is none."""
    return {subject for subject, _metric in _names(_parsed(text))}


def value(text: str, measured: Measured) -> float:
    """The median over the rounds of what *text* says; KeyError for an unknown metric."""
    return statistics.median(per_round(text, measured))


def per_round(text: str, measured: Measured) -> list[float]:
    """What *text* says, for each round."""
    tree = _parsed(text)
    rounds = min(len(measured[subject][metric]) for subject, metric in _names(tree))
    return [_evaluated(tree, measured, number) for number in range(rounds)]


def _parsed(text: str) -> ast.expr:
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not an expression") from error
    if not _names(tree):
        raise ValueError(f"{text!r} names no measurement")
    return tree


def _names(tree: ast.expr) -> set[tuple[str, str]]:
    match tree:
        case ast.BinOp(left=left, right=right) if type(tree.op) in _OPERATORS:
            return _names(left) | _names(right)
        case ast.Attribute(value=ast.Name(id=subject), attr=metric):
            return {(subject, metric)}
        case ast.Constant(value=int() | float()):
            return set()
    raise ValueError(f"{ast.unparse(tree)!r}: only SUBJECT.METRIC, numbers and + - * /")


def _evaluated(tree: ast.expr, measured: Measured, number: int) -> float:
    if isinstance(tree, ast.BinOp):
        left, right = (_evaluated(each, measured, number) for each in (tree.left, tree.right))
        return _OPERATORS[type(tree.op)](left, right)
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        return measured[tree.value.id][tree.attr][number]
    return float(ast.literal_eval(tree))
