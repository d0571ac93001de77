"""AggregateImagePropertiesIsolation: aggregates for images with certain properties.

Images without the property are not kept away.  Reference page filters, section 6.12.
"""

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from scheduler import objects
from scheduler.filters.base import Condition, HostFilter, Reason
from scheduler.hosts import aggregate_metadata
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

_UNKNOWN = "An aggregate has a metadata key '%s' that is not present in the image metadata."
OTHER_IMAGES = Reason("image_isolation.other", "the host's aggregates are for other images")


class AggregateImagePropertiesIsolation(HostFilter):
    """Passes hosts whose aggregates' metadata does not contradict a property of the image."""

    run_filter_once_per_request = True
    RUN_ON_REBUILD = True
    reasons = (OTHER_IMAGES,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        options = conf.filter_scheduler
        namespace = options.aggregate_image_properties_isolation_namespace
        separator = options.aggregate_image_properties_isolation_separator
        self.prefix = f"{namespace}{separator or ''}" if namespace else ""
        self._logged: set[str] = set()

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Look for each property of the image in the lists of its key, separated by commas."""
        if request.image is not None:
            properties = request.image.properties
            yield (
                OTHER_IMAGES,
                hosts.per_document(
                    "aggregates",
                    lambda each: self._admits(each, properties),
                    key=(self, repr(properties.set_fields())),
                ),
            )

    def _admits(self, aggregates: list[Any], properties: objects.ImageMetaProps) -> bool:
        for key in aggregate_metadata.keys(aggregates):
            if not key.startswith(self.prefix):
                continue
            try:
                value = properties.get(key)
            except AttributeError:
                if key not in self._logged:  # it can never matter
                    self._logged.add(key)
                    LOG.warning(_UNKNOWN, key)
                continue
            if value and str(value) not in aggregate_metadata.split_values(aggregates, key):
                return False
        return True
