"""Objects for receivers that are older than their sender (reference page objects, section 2.2).

A Nova service that is sent an object of a version that it does not know has it brought to
one that it knows by the conductor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import oslo_messaging as messaging

from scheduler import errors, objects
from scheduler.objects import versions


class BackportAPI:
    """The endpoint of topic ``conductor`` without a namespace, as far as computes need it."""

    target = messaging.Target(version="3.0")

    @messaging.expose
    @messaging.expected_exceptions(errors.NovaException)
    def object_backport_versions(
        self,
        context: Any,  # noqa: ARG002  (nobody is refused)
        objinst: objects.WireObject,
        object_versions: Mapping[str, str],
    ) -> dict[str, Any]:
        """*objinst* with itself and all objects in it at most of the versions given.

        Raises InvalidRequest when it is no object, or a version is none.
        """
        if not isinstance(objinst, objects.WireObject):
            raise errors.InvalidRequest(field="objinst", reason="it is not an object")
        try:
            wanted = {name: _at_most(name, asked) for name, asked in object_versions.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise errors.InvalidRequest(field="object_versions", reason=str(error)) from error
        return objinst.encoded(wanted)


def _at_most(name: str, asked: str) -> str:
    """The version *asked* for, or ours where that is older: more cannot be said."""
    cls = getattr(objects, name, None)
    if cls is None or versions.parse(asked) <= versions.parse(cls.VERSION):
        return asked
    ours: str = cls.VERSION
    return ours
