"""Segments of several workers as one history, and names in it replaced."""

import itertools
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from scheduler.recording.segments import Line, Segment, names_of

_UUID: Final = re.compile(r"[0-9a-f]{8}(-?)(?:[0-9a-f]{4}\1){3}[0-9a-f]{12}", re.IGNORECASE)
_WORD: Final = re.compile(r"[\w.@-]+")
#: Keys of names in a request, and what they name.
_NAMED: Final = {
    **dict.fromkeys(("project_id", "owner"), "project"),
    "user_id": "user",
    **dict.fromkeys(("host", "hosts", "force_hosts", "ignore_hosts"), "host"),
    **dict.fromkeys(("node", "force_nodes", "hypervisor_hostname"), "node"),
}
_GROUP: Final = "InstanceGroup"


def merged(segments: Sequence[Segment]) -> Iterator[Line]:
    """The lines of *segments* as one history; each is read twice.

    Those of one worker stay in order.  A line that shows a server where another worker has placed
    it comes after that decision, whatever the clocks say.  Else time decides.
    """
    streams: dict[str, list[Segment]] = defaultdict(list)
    decided: dict[tuple[str, str], tuple[str, int]] = {}
    count: dict[str, int] = defaultdict(int)
    for segment in sorted(segments, key=lambda each: each.path.name):
        stream = None
        for _place, line in segment:
            with segment.use():
                stream = stream or line["worker"]
                chosen = line["answer"][0] if line["answer"] else ()
                for server, (host, _node) in zip(names_of(line), chosen, strict=False):
                    decided.setdefault((server, host), (stream, count[stream]))
                count[stream] += 1
        if stream is not None:
            streams[stream].append(segment)
    lines = {stream: itertools.chain.from_iterable(each) for stream, each in streams.items()}
    given = dict.fromkeys(streams, 0)
    heads: dict[str, tuple[Line, list[tuple[str, int]]]] = {}

    def advance(stream: str) -> None:
        heads.pop(stream, None)
        _place, line = next(lines[stream], ("", None))
        if line is not None:
            pairs = ((values[0], host) for host, new, _gone in line["instances"] for values in new)
            shown = filter(None, map(decided.get, pairs))
            heads[stream] = line, [each for each in shown if each[0] != stream]

    for stream in streams:
        advance(stream)
    while heads:
        due = [s for s, (_line, after) in heads.items() if all(n < given[o] for o, n in after)]
        stream = min(due or heads, key=lambda each: (heads[each][0]["now"], each))
        yield heads[stream][0]
        given[stream] += 1
        advance(stream)


class Anonymous:
    """New names for hosts, projects, users, servers and groups; the same name gets the same one."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._uuids: dict[str, uuid.UUID] = {}

    def learn(self, segment: Segment) -> None:
        for _place, line in segment:
            with segment.use():
                self._learn_line(line)

    def _learn_line(self, line: Line) -> None:
        self._name("worker", line["worker"])
        for (host, node), *_values in line["rows"]:
            self._name("host", host)
            self._name("node", node)
        for _host, new, _gone in line["instances"]:
            for values in new:
                self._name("project", values[3])
                self._name("user", values[4])
        self._learn(line["spec"])

    def _learn(self, value: Any, kind: str | None = None) -> None:
        if isinstance(value, dict):
            if value.get("nova_object.name") == _GROUP:
                for name in ("uuid", "name"):
                    self._name("group", value["nova_object.data"].get(name))
            for key, each in value.items():
                self._learn(each, _NAMED.get(key))
        elif isinstance(value, list):
            for each in value:
                self._learn(each, kind)
        elif kind:
            self._name(kind, value)

    def _name(self, kind: str, name: Any) -> None:
        is_name = isinstance(name, str) and name and not _UUID.fullmatch(name)
        if is_name and name not in self._known:
            self._known[name] = f"{kind}-{len(self._known) + 1}"

    def replaced(self, value: Any) -> Any:
        """*value* of a line with all its names replaced; in keys of mappings UUIDs only."""
        if isinstance(value, dict):
            return {_UUID.sub(self._uuid, key): self.replaced(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.replaced(each) for each in value]
        if not isinstance(value, str):
            return value
        return self._known.get(value) or _WORD.sub(self._word, value)

    def line(self, line: Line) -> Line:
        """*line* without names; of options the values are looked at, of services no reasons."""
        found = self.replaced({key: each for key, each in line.items() if key != "options"})
        for _host, service in found["services"]:
            if service:
                service["disabled_reason"] = None
        if "options" in line:
            found["options"] = [[*names, self.replaced(value)] for *names, value in line["options"]]
        return found

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        if word in self._known and not word.isdecimal():
            return self._known[word]
        return _UUID.sub(self._uuid, word)

    def _uuid(self, found: re.Match[str]) -> str:
        plain = found[0].lower().replace("-", "")
        new = self._uuids.setdefault(plain, uuid.UUID(int=len(self._uuids) + 1))
        return str(new) if found[1] else new.hex
