"""Records of decisions as rows: written in the background, found by request or instance."""

import datetime
import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from scheduler.db.tables import decision_instances, decisions

#: Of larger requests only so many instances can be asked for.
MOST_INSTANCES = 1000
MOST_FOUND = 20
_UUID_LENGTH = 36
#: Of a server that its request does not name: it counts, and cannot be asked for.
_NAMELESS = ""


def add(
    connection: Connection, record: Mapping[str, Any], daemon: str, when: datetime.datetime
) -> None:
    """Write one record, in the form of ``explain.answer.to_dict``."""
    columns = {"request_id": record["request_id"], "outcome": record["outcome"]}
    columns |= {"recorded_at": when, "daemon": daemon, "record": json.dumps(record)}
    key: Any = connection.execute(decisions.insert().values(columns)).inserted_primary_key
    uuids = [uuid for uuid in record["instance_uuids"] if len(uuid) <= _UUID_LENGTH]
    uuids += [_NAMELESS] * (record["num_instances"] - len(record["instance_uuids"]))
    values = [{"decision_id": int(key[0]), "instance_uuid": uuid} for uuid in uuids]
    if values:
        connection.execute(decision_instances.insert(), values[:MOST_INSTANCES])


def find(connection: Connection, name: str) -> list[dict[str, Any]]:
    """The latest records of a request id or of an instance's uuid, the newest first."""
    if name == _NAMELESS:
        return []
    of_instance = decision_instances.c.instance_uuid == name
    ids = sa.select(decision_instances.c.decision_id).where(of_instance)
    either = sa.or_(decisions.c.request_id == name, decisions.c.id.in_(ids))
    query = sa.select(decisions.c.record).where(either)
    query = query.order_by(decisions.c.id.desc()).limit(MOST_FOUND)
    return [json.loads(row.record) for row in connection.execute(query)]


def purge(connection: Connection, before: datetime.datetime, most: int) -> int:
    """Delete what was recorded *before* then, and all but the latest *most*; how many went."""
    oldest_kept = sa.select(decisions.c.id).order_by(decisions.c.id.desc()).offset(most).limit(1)
    expired = sa.select(sa.func.max(decisions.c.id)).where(decisions.c.recorded_at < before)
    last = [connection.execute(each).scalar() for each in (oldest_kept, expired)]
    number = max((each for each in last if each is not None), default=None)
    if number is None:
        return 0
    of_these = decision_instances.c.decision_id <= number
    connection.execute(decision_instances.delete().where(of_these))
    return connection.execute(decisions.delete().where(decisions.c.id <= number)).rowcount


def counts(connection: Connection, daemon: str, since: datetime.datetime) -> dict[str, Any]:
    """Decisions and their servers by outcome that *daemon* has recorded *since* then."""
    query = (
        sa.select(
            decisions.c.outcome,
            sa.func.count(sa.distinct(decisions.c.id)),
            sa.func.count(decision_instances.c.id),
        )
        .select_from(decisions.outerjoin(decision_instances))
        .where(decisions.c.recorded_at >= since, decisions.c.daemon == daemon)
        .group_by(decisions.c.outcome)
    )
    found = connection.execute(query).all()
    return {outcome: {"decisions": n, "servers": servers} for outcome, n, servers in found}
