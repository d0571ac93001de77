"""NumInstancesWeigher: servers on the host; stacks, or spreads with a negative multiplier."""

from scheduler.weights.base import ColumnWeigher


class NumInstancesWeigher(ColumnWeigher):
    """Number of servers on the host.  Off unless its multiplier is set."""

    multiplier_option = "num_instances_weight_multiplier"
    column = "num_instances"
