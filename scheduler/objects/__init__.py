"""The objects that travel between the scheduler, its callers and compute hosts.

A class is a version and a table of fields; reading, writing, coercion, copying and the
conversions between releases work from the table (reference page objects).

oslo.versionedobjects is not used: it refuses objects of newer senders where this project reads
what it knows and passes the rest on (section 2.6), its unset fields raise where requests of many
releases simply leave fields out (section 1.3), and it spends time per field of every request on
change tracking and lazy loading that nothing here uses; here a value that already has the right
type is stored as it is.
"""

from __future__ import annotations

from scheduler.objects.aggregate import Aggregate, AggregateList
from scheduler.objects.base import WireObject, from_primitive, is_older, to_primitive
from scheduler.objects.block_device import BlockDeviceMapping, BlockDeviceMappingList
from scheduler.objects.build_request import BuildRequest, Tag, TagList
from scheduler.objects.cell import CellMapping
from scheduler.objects.compute_node import ComputeNode, ComputeNodeList, HVSpec
from scheduler.objects.flavor import Flavor
from scheduler.objects.group import InstanceGroup
from scheduler.objects.host_numa import NUMACell, NUMAPagesTopology, NUMATopology
from scheduler.objects.image import ImageMeta
from scheduler.objects.image_props import ImageMetaProps
from scheduler.objects.instance import Instance, InstanceList
from scheduler.objects.limits import NetworkMetadata, NUMATopologyLimits
from scheduler.objects.metric import MonitorMetric, MonitorMetricList
from scheduler.objects.migration import Migration
from scheduler.objects.nested import ListObject, OpaqueObject
from scheduler.objects.network import NetworkRequest, NetworkRequestList
from scheduler.objects.numa import InstanceNUMACell, InstanceNUMATopology, VirtCPUTopology
from scheduler.objects.pci import (
    InstancePCIRequest,
    InstancePCIRequests,
    PciDevicePool,
    PciDevicePoolList,
)
from scheduler.objects.plain import to_plain
from scheduler.objects.request_parts import (
    Destination,
    RequestGroup,
    RequestLevelParams,
    SchedulerLimits,
    SchedulerRetries,
)
from scheduler.objects.request_spec import RequestSpec
from scheduler.objects.security_group import SecurityGroup, SecurityGroupList
from scheduler.objects.selection import Selection
from scheduler.objects.service import Service, ServiceList

__all__ = [
    "Aggregate",
    "AggregateList",
    "BlockDeviceMapping",
    "BlockDeviceMappingList",
    "BuildRequest",
    "CellMapping",
    "ComputeNode",
    "ComputeNodeList",
    "Destination",
    "Flavor",
    "HVSpec",
    "ImageMeta",
    "ImageMetaProps",
    "Instance",
    "InstanceGroup",
    "InstanceList",
    "InstanceNUMACell",
    "InstanceNUMATopology",
    "InstancePCIRequest",
    "InstancePCIRequests",
    "ListObject",
    "Migration",
    "MonitorMetric",
    "MonitorMetricList",
    "NUMACell",
    "NUMAPagesTopology",
    "NUMATopology",
    "NUMATopologyLimits",
    "NetworkMetadata",
    "NetworkRequest",
    "NetworkRequestList",
    "OpaqueObject",
    "PciDevicePool",
    "PciDevicePoolList",
    "RequestGroup",
    "RequestLevelParams",
    "RequestSpec",
    "SchedulerLimits",
    "SchedulerRetries",
    "SecurityGroup",
    "SecurityGroupList",
    "Selection",
    "Service",
    "ServiceList",
    "Tag",
    "TagList",
    "VirtCPUTopology",
    "WireObject",
    "from_primitive",
    "is_older",
    "to_plain",
    "to_primitive",
]
