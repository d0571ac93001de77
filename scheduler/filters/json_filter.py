"""JsonFilter: a query over attributes of the hosts, evaluated for all of them at once.

Operators get one value per host, as distinct values and a position per host, and are evaluated
once per distinct combination of their arguments; numbers are compared as whole columns.
Reference page filters, section 6.22.
"""

import functools
import ipaddress
import json
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler import errors
from scheduler.filters import host_attributes
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts.candidates import Candidates

#: All that a query, which any user may write, can ask for; any other name has no value.  What else
#: runs on a host (``instances``) is nobody's but its owner's.
ATTRIBUTES = host_attributes.OF_TABLE | {"limits", "service", "updated"}
#: Up to here all integers are floats as well.
_EXACT = 2**53

_OPERATORS: dict[str, Callable[..., Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "in": lambda given: len(given) > 1 and given[0] in given[1:],
    "and": operator.and_,
    "or": operator.or_,
    # A list, which as a part of another expression is true.
    "not": lambda given: [not each for each in given],
}


def matches(text: Any, hosts: Candidates, most_levels: int) -> np.ndarray:
    """Mask of the *hosts* that match the query, which may nest in so many levels.

    Raises InvalidRequest if it cannot be read, or not be evaluated for one of the hosts, and
    DecisionGivenUp when the time of the decision is over.
    """
    if not isinstance(text, str):
        raise _malformed("one query is expected, not a list of them")
    try:
        query = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(f"it is not JSON: {error}") from error
    found = _Evaluation(hosts, most_levels).values_of(query, most_levels)
    return found.mask(lambda value: any(value) if isinstance(value, list) else bool(value))


def _malformed(reason: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(field="scheduler_hints.query", reason=reason)


@dataclass(eq=False)
class _Values:
    """One value per host.

    *numbers* are the values where all are numbers: a column, or the one that all hosts have.
    *known* are the distinct values, and per host the position of its own; of a column they are
    looked for when they are wanted.
    """

    known: tuple[list[Any], np.ndarray] | None = None
    numbers: Any = None

    @functools.cached_property
    def distinct(self) -> tuple[list[Any], np.ndarray]:
        if self.known is not None:
            return self.known
        numbers, positions = np.unique(self.numbers, return_inverse=True)
        return numbers.tolist(), positions

    def mask(self, test: Callable[[Any], bool]) -> np.ndarray:
        """Mask of the hosts whose value passes *test*."""
        values, positions = self.distinct
        return np.array([test(value) for value in values], dtype=np.bool_)[positions]


class _Evaluation:
    def __init__(self, hosts: Candidates, most_levels: int) -> None:
        self.hosts = hosts
        self.most_levels = most_levels
        self._require_time = functools.partial(hosts.scope.require_time, "JsonFilter")
        self._variables: dict[str, _Values] = {}
        self._nowhere = np.zeros(len(hosts), dtype=np.int64)

    def values_of(self, query: Any, depth: int) -> _Values:
        """The values of an expression, which may nest *depth* levels more."""
        if depth < 1:
            raise _malformed(
                f"it nests more than {self.most_levels} levels deep ([scheduler] max_request_depth)"
            )
        if not query:
            return self._same(True)
        if not isinstance(query, list | str):
            raise _malformed(f"{query!r:.80} is not a list that begins with an operator")
        symbol, *rest = list(query)
        if not isinstance(symbol, str) or symbol not in _OPERATORS:
            raise _malformed(f"{symbol!r:.80} is not an operator")
        args = [self._argument(each, depth) for each in rest]
        if symbol in ("and", "or"):
            return self._joined(args, _OPERATORS[symbol], first=symbol == "and")
        if symbol in ("in", "not"):
            return self._combined(args, _OPERATORS[symbol])
        return self._compared(args, _OPERATORS[symbol])

    def _argument(self, part: Any, depth: int) -> _Values:
        self._require_time()
        if isinstance(part, list):
            return self.values_of(part, depth - 1)
        if isinstance(part, str) and part.startswith("$"):
            if part not in self._variables:
                self._variables[part] = self._variable(part[1:])
            return self._variables[part]
        return self._same(None if part == "" else part)

    def _same(self, value: Any) -> _Values:
        is_number = isinstance(value, int | float) and abs(value) < _EXACT
        return _Values(([value], self._nowhere), value if is_number else None)

    def _variable(self, path: str) -> _Values:
        name, *rest = path.split(".")
        if not rest and host_attributes.are_numbers(self.hosts, name):
            return _Values(numbers=getattr(self.hosts, name))
        found = host_attributes.distinct(self.hosts, name) if name in ATTRIBUTES else None
        if found is None:
            return self._same(None)
        values, positions = found
        if name == "host_ip":
            values = [_address(value) for value in values]
        inner = [_within(value, rest) for value in values] if rest else values
        try:
            inner, among = host_attributes.interned(inner)
        except TypeError:  # lists and the like: each stays one of its own
            return _Values((inner, positions))
        return _Values((inner, among[positions]))

    def _joined(self, args: Sequence[_Values], join: Callable[..., Any], first: bool) -> _Values:
        """True where all arguments are, or one of them; missing ones count as the *first* value."""
        found = self.hosts.everything(first)
        for arg in args:
            self._require_time()
            found = join(found, arg.mask(lambda value: first if value is None else bool(value)))
        return _truth(found)

    def _compared(self, args: Sequence[_Values], test: Callable[[Any, Any], Any]) -> _Values:
        """True where the first argument compares so with each other one; false without others."""
        if len(args) > 1 and all(arg.numbers is not None for arg in args):
            mask = self.hosts.everything(True)
            for arg in args[1:]:
                mask &= test(args[0].numbers, arg.numbers)
            return _truth(mask)

        def holds(given: list[Any]) -> bool:
            found = [test(given[0], each) for each in given[1:]]  # any of them may have no order
            return bool(found) and all(found)

        return self._combined(args, holds)

    def _combined(self, args: Sequence[_Values], evaluate: Callable[[list[Any]], Any]) -> _Values:
        """*evaluate* every distinct combination of arguments; missing ones are left out."""
        positions, examples = self._nowhere, np.zeros(1, dtype=np.int64)
        columns = {id(arg): arg.distinct for arg in args}
        for values, places in columns.values():
            self._require_time()
            joint = positions * len(values) + places
            _distinct, examples, positions = np.unique(
                joint, return_index=True, return_inverse=True
            )
        results = []
        try:
            for host in examples.tolist():  # one of those with the same combination
                self._require_time()
                given = {key: values[places[host]] for key, (values, places) in columns.items()}
                results.append(evaluate([v for arg in args if (v := given[id(arg)]) is not None]))
        except TypeError as error:
            raise _malformed(str(error)) from error
        return _Values((results, positions))


def _truth(mask: np.ndarray) -> _Values:
    return _Values(([False, True], mask.astype(np.int64)))


def _address(text: str | None) -> Any:
    """Address in *text*: it never equals a text and cannot be put in order with one."""
    try:
        return None if text is None else ipaddress.ip_address(text)
    except ValueError:
        return text


def _within(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        if value is None:
            return None
        if not hasattr(value, "get"):
            raise _malformed(f"there is nothing named {part!r} in a {type(value).__name__}")
        try:
            value = value.get(part)
        except AttributeError as error:  # an object, of which only the fields are within reach
            raise _malformed(str(error)) from error
    return value


class JsonFilter(HostFilter):
    """Passes hosts that match the JSON text of hint ``query``."""

    reasons = (Reason("json.no_match", "the host does not match the query"),)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        self.most_levels = conf.scheduler.max_request_depth

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Raises InvalidRequest for a query that cannot be evaluated, on whichever host."""
        if query := request.get_scheduler_hint("query"):
            yield self.reasons[0], matches(query, hosts, self.most_levels)
