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


class LongText(columns.FormattableColumn[str]):
    """Text of many lines, a traceback for one: people get its last line and how to see the rest."""

    def human_readable(self) -> str:
        """The last line, which of a traceback is the error."""
        lines = self._value.rstrip().splitlines() or [""]
        if len(lines) == 1:
            return lines[0]
        return f"{lines[-1]} (last of {len(lines)} lines; all of them: -f value)"

    def machine_readable(self) -> str:
        """All of it."""
        return self._value


class Shortened(columns.FormattableColumn[Any]):
    """A value that may be a long text or list: people see how it begins."""

    LENGTH = 60

    def human_readable(self) -> str:
        """At most so many characters."""
        text = "-" if self._value is None else str(self._value)
        return text if len(text) <= self.LENGTH else f"{text[: self.LENGTH]}... ({len(text)})"

    def machine_readable(self) -> Any:
        """All of it."""
        return self._value
