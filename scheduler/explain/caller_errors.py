"""Errors as callers get them, in classes of Nova: the id of a fault, counts of hosts."""

from keystoneauth1.exceptions import ClientException
from oslo_log import log as logging
from oslo_utils import uuidutils

from scheduler import errors
from scheduler.engine.record import DecisionRecord

LOG = logging.getLogger(__name__)


def for_caller(error: Exception, record: DecisionRecord, *, exposes: bool) -> Exception:
    """The error for the caller: a fault by its id, with *exposes* NoValidHost with counts."""
    if record.fault_id is not None:
        return identified(error, record.request_id, "select_destinations", record.fault_id)
    if exposes and isinstance(error, errors.NoValidHost):
        return _with_counts(error, record)
    return error


def identified(
    error: Exception, request_id: str | None, method: str, fault_id: str | None = None
) -> Exception:
    """Log an internal fault with its traceback and an id; return an error that names the id.

    Errors of keystoneauth stay what they are: Nova lets them through.
    """
    fault_id = fault_id or uuidutils.generate_uuid()
    LOG.error(
        "Internal fault %s in %s, request %s: %s",
        *(fault_id, method, request_id, error),
        exc_info=(type(error), error, error.__traceback__),
    )
    what = type(error).__name__
    if isinstance(error, errors.ExtensionFailed):  # whose own words are for operators only
        cause = error.__cause__
        what = "{name} failed{place}".format_map(error.kwargs)
        what += "" if cause is None else f": {type(cause).__name__}"
    elif isinstance(error, errors.NovaException | ClientException):
        if isinstance(error, errors.NovaException):
            error.kwargs["fault_id"] = fault_id
        return error
    text = f"Internal fault {fault_id} ({what}); the scheduler's log has more"
    fault = errors.NovaException(text, fault_id=fault_id)
    fault.__cause__ = error
    return fault


def _with_counts(error: errors.NoValidHost, record: DecisionRecord) -> errors.NoValidHost:
    parts = [f"{cause} {count}" for cause, count in record.never_evaluated.items()]
    for count in record.filters:
        if count.removed:
            reasons = ", ".join(f"{code} {number}" for code, number in count.removed.items())
            parts.append(f"{count.name} {count.start - count.end} ({reasons})")
    if not parts:
        return error
    counts = f"Removed of {record.fleet} hosts: {'; '.join(parts)}."
    reason = f"{error.kwargs.get('reason') or ''} {counts}".strip()
    given = {**error.kwargs, "reason": reason, "error_code": errors.code_of(error)}
    longer = type(error)(f"{error.format_message().rstrip()} {counts}", **given)
    longer.__cause__ = error
    return longer
