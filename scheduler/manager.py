"""The scheduler's side of its RPC methods (reference page rpc, sections 2 and 4)."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log as logging

from scheduler import errors, objects
from scheduler.drivers.selections import as_dict, todays_answer
from scheduler.explain.recorder import Recorder, for_caller
from scheduler.idempotency import ReplyCache, request_key

LOG = logging.getLogger(__name__)

NOT_GIVEN: Final = object()
"""Stands for an argument that the message does not carry, as null is a value of its own."""

#: Phases of which notifications tell.
START, END = "start", "end"

#: Parts of a RequestSpec that are as long as their sender likes.
_LISTS = [
    (path, path.split("."))
    for path in (
        *("scheduler_hints", "ignore_hosts", "force_hosts", "force_nodes", "requested_resources"),
        *("flavor.extra_specs", "instance_group.members", "instance_group.hosts"),
        *("pci_requests.requests", "numa_topology.cells", "requested_destination.aggregates"),
        *("requested_destination.forbidden_aggregates", "retry.hosts"),
    )
]
#: Sizes that every flavor has.
_SIZES: Final = ("vcpus", "memory_mb", "root_gb")
#: Limits of the columns that a request is written to.
_LARGEST_INTEGER: Final = 2**31 - 1
_MOST_CHARACTERS: Final = 255
_UUID: Final = re.compile("[!-~]{0,36}")
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


class RequestLimits:
    """Limits of the size of one request, as ``[scheduler]`` sets them: far above any of Nova's."""

    def __init__(self, conf: Any) -> None:
        self.most_instances: int = conf.scheduler.max_instances_per_request
        self.most_entries: int = conf.scheduler.max_request_entries
        self.most_characters: int = conf.scheduler.max_request_text_characters

    def check_instances(self, field: str, count: int, least: int = 0) -> None:
        """Raise InvalidRequest for too many instances, or fewer than *least*."""
        if not least <= count <= self.most_instances:
            reason = (
                f"{count} instances; {least} to {self.most_instances} may be asked for at once "
                "([scheduler] max_instances_per_request)"
            )
            raise errors.InvalidRequest(field=field, reason=reason)

    def check(self, spec: objects.RequestSpec) -> None:
        """Raise InvalidRequest naming a size that is missing, or the first part too large."""
        for name in _SIZES if spec.flavor else ():
            if getattr(spec.flavor, name) is None:
                raise errors.InvalidRequest(field=f"RequestSpec.flavor.{name}", reason="missing")
        for path, names in _LISTS:
            part: Any = spec
            for name in names:
                part = None if part is None else getattr(part, name)
            self._check_size(path, part or (), self.most_entries, "entries")
        hints = spec.scheduler_hints or {}
        texts = {f"scheduler_hints.{hint}": values for hint, values in hints.items()}
        for name, values in texts.items():
            self._check_size(name, values, self.most_entries, "entries")
        extra_specs = (spec.flavor and spec.flavor.extra_specs) or {}
        texts |= {f"flavor.extra_specs.{key}": [value] for key, value in extra_specs.items()}
        for name, values in texts.items():
            for value in values:
                self._check_size(name, value, self.most_characters, "characters")

    @staticmethod
    def check_columns(context: Any, spec: objects.RequestSpec, uuids: Sequence[str]) -> None:
        """Raise InvalidRequest naming the first value that no column of a database holds."""
        request_id = getattr(context, "request_id", None) or ""
        _check_type("request_id", request_id, str)
        if len(request_id) > _MOST_CHARACTERS or _UNSTORABLE.search(request_id):
            reason = f"{request_id!r:.80} is no text of at most {_MOST_CHARACTERS} characters"
            raise errors.InvalidRequest(field="request_id", reason=reason)
        _check_uuids("instance_uuids", uuids)
        _check_uuids("RequestSpec.instance_uuid", [spec.instance_uuid or ""])
        sizes = {}
        if flavor := spec.flavor:
            sizes["flavor.id"] = flavor.id or 0
            sizes["flavor.root_gb + ephemeral_gb"] = spec.root_gb + spec.ephemeral_gb
        for name, size in sizes.items():
            if abs(size) > _LARGEST_INTEGER:
                reason = f"{size} is larger than {_LARGEST_INTEGER}"
                raise errors.InvalidRequest(field=f"RequestSpec.{name}", reason=reason)

    @staticmethod
    def _check_size(name: str, part: Sized, most: int, unit: str) -> None:
        if len(part) > most:
            option = (
                "max_request_text_characters" if unit == "characters" else "max_request_entries"
            )
            reason = f"{len(part)} {unit}; [scheduler] {option} allows {most}"
            raise errors.InvalidRequest(field=f"RequestSpec.{name}", reason=reason)


class SchedulerManager:
    """Checks what a message brought, asks the driver, and shapes the answer for the caller."""

    def __init__(self, conf: cfg.ConfigOpts, driver: Any, notifications: Any = None) -> None:
        """*notifications* tell of the start and the end of selections, where it is ``enabled``."""
        self.driver = driver
        self.replies = ReplyCache.from_conf(conf)
        self._notifications = notifications
        #: Where decisions are written down: where the driver does that itself, if it can.
        own = getattr(driver, "recorder", None)
        self.recorder: Recorder = own or Recorder(conf.explain.memory_bytes)
        self._exposes_reasons = conf.scheduler.expose_reasons
        #: Most that one request may ask for; another one after a reload.
        self.limits = RequestLimits(conf)

    def select_destinations(
        self,
        context: Any,
        request_spec: dict[str, Any] | None = None,
        filter_properties: dict[str, Any] | None = None,
        spec_obj: Any = NOT_GIVEN,
        instance_uuids: list[str] | None = None,
        return_objects: bool = False,
        return_alternates: bool = False,
    ) -> list[Any]:
        """A host for every instance: lists of Selections, or dicts for older callers.

        The same request again gets the same answer, and claims nothing.  Raises NoValidHost when
        not every instance gets a host, InvalidRequest naming the argument that is missing or wrong;
        a fault of the driver is a NovaException with an id that is in the log.
        """
        try:
            spec = _request(request_spec, filter_properties, spec_obj)
            self._check_instances(spec, instance_uuids)
            self.limits.check(spec)
            self.limits.check_columns(context, spec, instance_uuids or ())
        except errors.InvalidRequest as error:
            self.recorder.refused(context, error)
            raise
        LOG.debug("Starting to schedule for instances: %s", instance_uuids)
        alternates = bool(return_objects and return_alternates)
        decide = functools.partial(self._decide, context, spec, instance_uuids, alternates)
        notify = functools.partial(self._notify_again, context, spec, instance_uuids)
        key = request_key(context, spec, instance_uuids)
        if key is None:
            chosen = decide()
        else:
            given = (request_spec, filter_properties, spec, instance_uuids, alternates)
            chosen = self.replies.once(key, given, decide, notify)
        older = objects.older_for(None if spec_obj is NOT_GIVEN else spec)
        if not return_objects:
            return [as_dict(each, older.get("NUMATopologyLimits")) for each in chosen]
        return [[each.encoded(older) for each in row] for row in chosen] if older else chosen

    def _decide(
        self,
        context: Any,
        spec: objects.RequestSpec,
        instance_uuids: list[str] | None,
        alternates: bool,
    ) -> list[Any]:
        """Ask the driver, and notify of the start and of the success.

        As in Nova there is no start without an offer where hosts must be offered.
        """
        if not (waits_for_offers := self.driver.claims.offers_hosts):
            self._notify(context, START, spec)
        name = type(getattr(self.driver, "driver", self.driver)).__name__
        try:
            with self.recorder.decision(name, context, spec, instance_uuids) as record:
                answer = self.driver.select_destinations(
                    context, spec, instance_uuids, return_alternates=alternates
                )
                count = len(instance_uuids or ()) or spec.num_instances
                chosen: list[Any] = todays_answer(self.driver, answer, count)
                if not record.chosen:  # by a driver that knows of no records
                    record.note_chosen(chosen)
        except Exception as error:
            is_in_vain = record.placement is not None and record.placement.is_in_vain
            if waits_for_offers and record.fleet and not is_in_vain:  # there were hosts to refuse
                self._notify(context, START, spec)
            error_for_caller = for_caller(error, record, exposes=self._exposes_reasons)
            if error_for_caller is error:
                raise
            raise error_for_caller from error_for_caller.__cause__
        if waits_for_offers:
            self._notify(context, START, spec)
        self._notify(context, END, spec, instance_uuids)
        return chosen

    def _notify_again(self, context: Any, spec: Any, uuids: list[str] | None) -> None:
        self._notify(context, START, spec)
        self._notify(context, END, spec, uuids)

    def _notify(
        self, context: Any, phase: str, spec: objects.RequestSpec, uuids: list[str] | None = None
    ) -> None:
        """Send the notification of *phase*, if the driver is of a kind that does.

        With *uuids* it has the request as the last of these servers was decided.
        """
        notifications = self._notifications
        if notifications is None or not notifications.enabled:
            return
        if getattr(self.driver, "notifies_of_selections", False):
            notifications.select_destinations(context, phase, _as_decided(spec, uuids))

    def reconfigured(self, conf: cfg.ConfigOpts) -> Callable[[], None]:
        """Build what *conf*, a configuration that was read again, makes necessary.

        What is returned puts it in force between two decisions, with everything in the database
        read anew.  Raises an error that names the option where *conf* cannot be used.
        """
        driver, options = self.driver, conf.scheduler
        takes = [each.reconfigured(conf) for each in (driver, driver.claims)]

        def take() -> None:
            for each in takes:
                each()
            self.replies.reconfigure(conf)
            self.limits = RequestLimits(conf)
            self._exposes_reasons = options.expose_reasons
            self.recorder.records.limit_bytes = conf.explain.memory_bytes
            if driver.builds is not None:
                driver.builds.max_attempts = options.max_attempts

        return functools.partial(driver.host_manager.reconfigure, conf, take)

    def _check_instances(self, spec: objects.RequestSpec, uuids: Any) -> None:
        if uuids is not None:
            _check_texts("instance_uuids", uuids)
        count = len(uuids) if uuids else spec.num_instances
        self.limits.check_instances("instance_uuids" if uuids else "num_instances", count)

    def update_aggregates(self, context: Any, aggregates: Any) -> None:
        """Take one aggregate, or a list of them, that were created or changed."""
        several = [aggregates] if isinstance(aggregates, objects.Aggregate) else aggregates
        if not isinstance(several, list | objects.AggregateList):
            raise _wrong_type("aggregates", "Aggregates", aggregates)
        for each in several:
            _check_type("aggregates", each, objects.Aggregate)
            _check_type("aggregates.id", each.id, int)
        self.driver.host_manager.update_aggregates(list(several))

    def delete_aggregate(self, context: Any, aggregate: objects.Aggregate) -> None:
        _check_type("aggregate", aggregate, objects.Aggregate)
        _check_type("aggregate.id", aggregate.id, int)
        self.driver.host_manager.delete_aggregate(aggregate)

    def update_instance_info(
        self, context: Any, host_name: str, instance_info: objects.InstanceList
    ) -> None:
        """Take the instances of a host: the one that changed, or all of them."""
        _check_type("host_name", host_name, str)
        _check_type("instance_info", instance_info, objects.InstanceList)
        self.driver.host_manager.update_instance_info(context, host_name, instance_info)

    def delete_instance_info(self, context: Any, host_name: str, instance_uuid: str) -> None:
        _check_type("host_name", host_name, str)
        _check_type("instance_uuid", instance_uuid, str)
        self.driver.host_manager.delete_instance_info(context, host_name, instance_uuid)

    def sync_instance_info(self, context: Any, host_name: str, instance_uuids: list[str]) -> None:
        """Compare the instances that a host says it has with those known here."""
        _check_type("host_name", host_name, str)
        _check_texts("instance_uuids", instance_uuids)
        self.driver.host_manager.sync_instance_info(context, host_name, instance_uuids)


def _request(request_spec: Any, filter_properties: Any, spec_obj: Any) -> objects.RequestSpec:
    """The request object that came, or the one made from the dicts of versions below 4.3."""
    if spec_obj is not NOT_GIVEN:
        _check_type("spec_obj", spec_obj, objects.RequestSpec)
        return spec_obj
    if request_spec is None:
        raise errors.InvalidRequest(
            field="request_spec", reason="missing, and no spec_obj is given either"
        )
    _check_type("request_spec", request_spec, dict)
    properties = {} if filter_properties is None else filter_properties
    _check_type("filter_properties", properties, dict)
    return objects.RequestSpec.from_primitives(request_spec, properties)


def _as_decided(spec: objects.RequestSpec, uuids: list[str] | None) -> objects.RequestSpec:
    if not uuids or spec.instance_uuid == uuids[-1]:
        return spec
    last = spec.copy()
    last.instance_uuid = uuids[-1]
    return last


def _check_type(field: str, value: Any, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise _wrong_type(field, wanted.__name__, value)


def _check_uuids(field: str, uuids: Sequence[str]) -> None:
    several = Counter(uuids) if len(uuids) > 1 else dict.fromkeys(uuids, 1)
    for uuid, times in several.items():
        if times > 1:
            raise errors.InvalidRequest(field=field, reason=f"{uuid!r:.80} is named twice")
        if not _UUID.fullmatch(uuid):
            raise errors.InvalidRequest(field=field, reason=f"{uuid!r:.80} is not a uuid")


def _check_texts(field: str, value: Any) -> None:
    _check_type(field, value, list)
    for each in value:
        _check_type(field, each, str)


def _wrong_type(field: str, wanted: str, value: Any) -> errors.InvalidRequest:
    return errors.InvalidRequest(
        field=field, reason=f"{wanted} expected, {type(value).__name__} given"
    )
