"""Operators of flavor extra specs: ``>= 4``, ``s== gold``, ``<in> aes``, ``<or> a <or> b``.

Reference page filters, section 5.4.  Comparisons with a number operator read both sides as
floats; ``=`` means "at least"; ``<`` and ``>`` alone do not exist.
"""

import operator
from collections.abc import Callable

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_STRINGS: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": operator.contains,
}


def match(value: str | None, requirement: str) -> bool:
    """True when *value* satisfies *requirement*; a requirement without an operator means equality.

    Raises ValueError for a number operator on something that is not a number, and for ``<or>``
    without any alternative.
    """
    if value is None:
        return False
    symbol, *operands = requirement.split() or [""]
    if symbol == "<or>":
        if not operands:
            raise ValueError("<or> needs at least one alternative")
        return value in operands[::2]  # what stands between the alternatives is not looked at
    if symbol == "<all-in>":
        return bool(operands) and all(operand in value for operand in operands)
    if symbol in _NUMBERS:
        return bool(operands) and _NUMBERS[symbol](float(value), float(operands[0]))
    if symbol in _STRINGS:
        return bool(operands) and _STRINGS[symbol](value, operands[0])
    return value == requirement
