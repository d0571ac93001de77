"""The objects that travel between the scheduler, its callers and compute hosts.

A class is a version and a table of fields; reading, writing, coercion, copying and the
conversions between releases work from the table (reference page objects).  Imports nothing of
the scheduler but ``errors``; every room may import this package.

oslo.versionedobjects is not used.  It refuses objects of newer senders, which this project reads
(section 2.6); its unset fields raise, but requests of many releases leave fields out (section
1.3); and it tracks changes and loads lazily per field, which nothing here needs.
"""

# ruff: noqa: F401 - names for others to import from here

from scheduler.objects.base import (
    ListObject,
    WireObject,
    from_primitive,
    is_older,
    older_for,
    to_plain,
)
from scheduler.objects.host import (
    Aggregate,
    AggregateList,
    CellMapping,
    ComputeNode,
    ComputeNodeList,
    HVSpec,
    MonitorMetric,
    MonitorMetricList,
    PciDevicePool,
    PciDevicePoolList,
    Service,
)
from scheduler.objects.image import ImageMeta, ImageMetaProps
from scheduler.objects.instance import (
    Instance,
    InstanceList,
    InstancePCIRequest,
    InstancePCIRequests,
)
from scheduler.objects.numa import (
    InstanceNUMACell,
    InstanceNUMATopology,
    NetworkMetadata,
    NUMACell,
    NUMAPagesTopology,
    NUMATopology,
    NUMATopologyLimits,
    VirtCPUTopology,
)
from scheduler.objects.request_parts import (
    Destination,
    Flavor,
    InstanceGroup,
    NetworkRequest,
    NetworkRequestList,
    RequestGroup,
    RequestLevelParams,
    SchedulerRetries,
    SecurityGroup,
    SecurityGroupList,
)
from scheduler.objects.request_spec import RequestSpec, SchedulerLimits, Selection
