"""DiskWeigher: free disk; spreads, or stacks with a negative multiplier."""

from scheduler.weights.base import ColumnWeigher


class DiskWeigher(ColumnWeigher):
    """The host's free disk; less than nothing counts as none."""

    minval = 0
    multiplier_option = "disk_weight_multiplier"
    column = "free_disk_mb"
