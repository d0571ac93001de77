"""IoOpsWeigher: operations in progress; avoids busy hosts by its negative default multiplier."""

from scheduler.weights.base import ColumnWeigher


class IoOpsWeigher(ColumnWeigher):
    """Number of servers in the middle of an operation."""

    minval = 0
    multiplier_option = "io_ops_weight_multiplier"
    column = "num_io_ops"
