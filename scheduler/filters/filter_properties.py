"""Filters written before there was a request object (reference page filters, section 9).

Their second parameter is called ``filter_properties`` and is a dict.
"""

import inspect
from collections.abc import Iterable
from typing import Any

from scheduler import objects
from scheduler.filters.base import BaseHostFilter, request_is_rebuild
from scheduler.objects.image import LEGACY_NAMES


def offered(each: BaseHostFilter) -> BaseHostFilter:
    """*each* itself, or as one that takes today's request if it was written for the dict."""
    for method in (each.filter_all, each.host_passes):
        if "filter_properties" in inspect.signature(method).parameters:
            return DictFilter(each)
    return each


class DictFilter(BaseHostFilter):
    """Gives *wrapped* the dict; all else is as there."""

    def __init__(self, wrapped: BaseHostFilter) -> None:
        super().__init__(wrapped.conf)
        self.wrapped = wrapped
        self.RUN_ON_REBUILD = wrapped.RUN_ON_REBUILD
        self.run_filter_once_per_request = wrapped.run_filter_once_per_request

    @property
    def name(self) -> str:
        """That of the filter itself."""
        return self.wrapped.name

    def run_filter_for_index(self, index: int) -> bool:
        """As the filter itself says."""
        return self.wrapped.run_filter_for_index(index)

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any] | None:
        """The hosts that the filter itself lets pass."""
        if not self.RUN_ON_REBUILD and request_is_rebuild(spec_obj):
            return filter_obj_list
        return self.wrapped.filter_all(filter_obj_list, filter_properties_of(spec_obj))


def filter_properties_of(spec: objects.RequestSpec) -> dict[str, Any]:
    """The dict that stood for the request *spec*, in plain values."""
    request_spec = spec.to_legacy_request_spec_dict()
    instance = request_spec["instance_properties"]
    image = request_spec["image"]
    instance["image_ref"] = image.get("id", "")
    instance["os_type"] = image.get("properties", {}).get("os_type")
    image["properties"] = _as_glance_spells(image.get("properties", {}))
    properties = {
        "scheduler_hints": {},
        **spec.to_legacy_filter_properties_dict(),
        "request_spec": request_spec,
        "config_options": spec.config_options,
        "instance_type": request_spec["instance_type"],
        "project_id": instance.get("project_id"),
        "os_type": instance["os_type"],
        "pci_requests": instance.get("pci_requests"),
    }
    plain: dict[str, Any] = objects.to_plain(properties)
    return plain


def _as_glance_spells(properties: dict[str, Any]) -> dict[str, Any]:
    """Image properties under the names of old, where there are any, besides today's."""
    old = {was: properties[now] for was, now in LEGACY_NAMES.items() if now in properties}
    return {**properties, **old}
