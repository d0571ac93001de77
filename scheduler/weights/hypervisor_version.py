"""HypervisorVersionWeigher: newer hypervisors first, so that servers can move on from there."""

from scheduler.weights.base import ColumnWeigher


class HypervisorVersionWeigher(ColumnWeigher):
    """The version of the host's hypervisor; one that is not known is the oldest."""

    multiplier_option = "hypervisor_version_weight_multiplier"
    column = "hypervisor_version"
