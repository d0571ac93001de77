"""Fill in the usual flavors, cell0 and the one cell that this database and its bus are."""

import datetime
import uuid

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

#: name, memory in MB, vCPUs, root disk in GB; the flavorid is the place in this list.
FLAVORS = (
    ("m1.tiny", 512, 1, 1),
    ("m1.small", 2048, 1, 20),
    ("m1.medium", 4096, 2, 40),
    ("m1.large", 8192, 4, 80),
    ("m1.xlarge", 16384, 8, 160),
)
CELL0_UUID = str(uuid.UUID(int=0))
NAMES = ("created_at", "name", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "flavorid", "swap")
flavors = sa.table(
    "flavors",
    *(sa.column(name) for name in NAMES),
    *(sa.column(name) for name in ("rxtx_factor", "vcpu_weight", "disabled", "is_public")),
)
cell_mappings = sa.table(
    "cell_mappings",
    *(sa.column(name) for name in ("created_at", "uuid", "name", "transport_url", "disabled")),
)


def upgrade() -> None:
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None, microsecond=0)
    usual = {"ephemeral_gb": 0, "swap": 0, "rxtx_factor": 1.0, "vcpu_weight": 0}
    sizes = [
        dict(zip(("name", "memory_mb", "vcpus", "root_gb"), row, strict=True)) for row in FLAVORS
    ]
    op.bulk_insert(
        flavors,
        [
            {
                **usual,
                **size,
                "created_at": now,
                "flavorid": str(number),
                "disabled": False,
                "is_public": True,
            }
            for number, size in enumerate(sizes, start=1)
        ],
    )
    op.bulk_insert(
        cell_mappings,
        [
            _cell(now, CELL0_UUID, "cell0", "none:///"),
            # No URL: the cell is where this process is connected to.
            _cell(now, str(uuid.uuid4()), "cell1", None),
        ],
    )


def _cell(
    now: datetime.datetime, cell_uuid: str, name: str, transport_url: str | None
) -> dict[str, object]:
    return {
        "created_at": now,
        "uuid": cell_uuid,
        "name": name,
        "transport_url": transport_url,
        "disabled": False,
    }
