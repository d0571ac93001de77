"""Values of more than one part: text for people, structure for ``-f json`` and ``-f yaml``."""

from __future__ import annotations

from typing import Any

from cliff import columns


class Usage(columns.FormattableColumn[Any]):
    """``(used, total)``: ``3/16`` for people, two numbers for programs."""

    def human_readable(self) -> str:
        """Used of total."""
        used, total = self._value
        return f"{used}/{total}"

    def machine_readable(self) -> dict[str, int]:
        """Both numbers."""
        used, total = self._value
        return {"used": used, "total": total}


class Names(columns.FormattableColumn[Any]):
    """A list of names."""

    def human_readable(self) -> str:
        """One after the other."""
        return ", ".join(self._value)

    def machine_readable(self) -> list[str]:
        """The list."""
        return list(self._value)


class Properties(columns.FormattableColumn[Any]):
    """Keys and values."""

    def human_readable(self) -> str:
        """``key='value'``, sorted."""
        return ", ".join(f"{key}='{value}'" for key, value in sorted(self._value.items()))

    def machine_readable(self) -> dict[str, Any]:
        """The mapping."""
        return dict(self._value)
