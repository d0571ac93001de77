"""RAMWeigher: free memory; spreads, or stacks with a negative multiplier."""

from scheduler.weights.base import ColumnWeigher


class RAMWeigher(ColumnWeigher):
    """The host's free memory; less than nothing counts as none."""

    minval = 0
    multiplier_option = "ram_weight_multiplier"
    column = "free_ram_mb"
