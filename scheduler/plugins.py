"""Loading classes by dotted path or entry point, with errors that name the option."""

import functools
import importlib
import importlib.metadata
import inspect
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scheduler import errors


def import_path(path: str) -> Any:
    """The attribute at *path* (``package.module.Name``); ImportError, ValueError without a dot."""
    module_name, _, name = path.rpartition(".")
    if not module_name:
        raise ValueError(f"{path!r} is not a dotted path")
    module = importlib.import_module(module_name)
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise ImportError(f"Class {name} cannot be found in module {module_name}") from error


@functools.cache
def installed() -> Any:
    """All entry points there are; reading those of 150 distributions takes 30 ms."""
    return importlib.metadata.entry_points()


def entry_point_names(namespace: str) -> set[str]:
    return set(installed().select(group=namespace).names)


def entry_point(namespace: str, name: str) -> Any:
    """The object behind an entry point, None without one; raises whatever its import raises."""
    for entry in installed().select(group=namespace, name=name):
        return entry.load()
    return None


def named_class(namespace: str, directory: str, name: str, base: type, option: str) -> Any:
    """The class derived from *base* that the entry point is, else that of a file in *directory*.

    None if there is neither.  Raises ConfigurationError, naming *option*, if it cannot be imported,
    ClassNotFound if the entry point is anything else.
    """
    try:
        found = entry_point(namespace, name)
    except (ImportError, AttributeError) as error:
        raise errors.ConfigurationError(option=option, reason=f"{name!r}: {error}") from error
    if found is None:
        return site_class(directory, name, base, option)
    if inspect.isclass(found) and issubclass(found, base):
        return found
    reason = f"Not a class of the correct type for {option}"
    raise errors.ClassNotFound(class_name=name, exception=reason)


def shipped(package: str, modules: Iterable[str], base: type) -> dict[str, Any]:
    """By Nova's dotted path the public subclasses of *base* in *modules* of our *package*."""
    return {
        f"nova.{path}.{name}": found
        for path in (f"{package}.{module}" for module in modules)
        for name, found in vars(importlib.import_module(path)).items()
        if _is_public(found, base) and found.__module__ == path
    }


def _is_public(found: Any, base: type) -> bool:
    is_class = inspect.isclass(found) and issubclass(found, base)
    return is_class and not found.__name__.startswith("_")


def prepare(conf: Any) -> None:
    """Let plug-ins be imported as *conf* says; every program calls this before it loads any."""
    add_directory(conf.filter_scheduler.extensions_directory)
    if conf.scheduler.nova_compat_imports:  # which brings the message bus
        importlib.import_module("scheduler.nova_compat").install(conf)


def add_directory(directory: str) -> None:
    """Let modules be imported from *directory*, after all other places."""
    if os.path.isdir(directory) and directory not in sys.path:
        sys.path.append(directory)


def site_class(directory: str, name: str, base: type, option: str) -> Any:
    """The class *name*, derived from *base*, of a file in *directory*; None without one.

    Raises ConfigurationError, naming *option* and the file, if that cannot be imported.
    """
    add_directory(directory)
    importlib.invalidate_caches()
    failure = None
    for path in sorted(pathlib.Path(directory).glob("*.py")):
        try:
            module = importlib.import_module(path.stem)
            if not path.samefile(getattr(module, "__file__", None) or os.devnull):
                raise ImportError("another module has this name; rename the file")
        except Exception as error:  # noqa: BLE001 - a site's own code may raise anything
            failure = failure or (f"{path}: {type(error).__name__}: {error}", error)
            continue
        found = getattr(module, name, None)
        if inspect.isclass(found) and issubclass(found, base):
            return found
    if failure is not None:
        reason = f"{name!r} may be in a file that cannot be imported: {failure[0]}"
        raise errors.ConfigurationError(option=option, reason=reason) from failure[1]
    return None


def classes_at(path: str, base: type, known: Mapping[str, Any], option: str) -> Iterable[type]:
    """The classes that one configured *path* stands for.

    *known* maps Nova's own dotted paths to this project's classes or functions.  A class must
    derive from *base* and be public; a function is called and its result taken as it is
    (reference page filters, section 2.2).  Raises ConfigurationError or ClassNotFound, naming
    *option*.
    """
    try:
        found = known[path] if path in known else import_path(path.strip())
    except (ImportError, ValueError) as error:
        by_name = {each.rpartition(".")[2]: each for each in known}
        near = errors.nearest(path.rpartition(".")[2], by_name, 0.9)
        hint = "" if near is None else f"; did you mean {by_name[near]}?"
        reason = f"{path!r}: {error}{hint}"
        raise errors.ConfigurationError(option=option, reason=reason) from error
    if _is_public(found, base):
        return [found]
    if inspect.isfunction(found):
        return list(found())
    reason = f"Not a class of the correct type for {option}"
    raise errors.ClassNotFound(class_name=path, exception=reason)


def instantiate(cls: Callable[..., Any], conf: Any) -> Any:
    """``cls(conf)`` if the constructor takes an argument, else ``cls()`` as Nova calls it."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return cls()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes_conf = any(p.kind in positional for p in parameters)
    return cls(conf) if takes_conf else cls()
