"""TrustedFilter: nodes that an attestation server vouches for.

The one filter that asks a server while a decision is taken, and only for flavors that demand
trust.  Reference page filters, section 6.27.
"""

import datetime
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import requests
from oslo_log import log as logging
from oslo_utils import timeutils

from scheduler.filters.base import Condition, HostFilter, Reason, extra_specs_of
from scheduler.hosts.candidates import Candidates

LOG = logging.getLogger(__name__)

OTHER_LEVEL = Reason("trusted.other", "the node's level of trust is not the one asked for")
UNKNOWN = "unknown"
#: Longest wait for the server's answer, and for being connected to it.
ANSWER_SECONDS = 10.0
_SUCCESS = (200, 201, 202, 204)
_LOCAL_TIME = "%a %b %d %H:%M:%S %Y"


@dataclass(frozen=True, slots=True)
class Trust:
    """The level of trust in a node, as of *time* (seconds since the epoch)."""

    level: str
    time: float


class AttestationService:
    """The server that *options*, those of ``[trusted_computing]``, name, and its latest answer.

    What it says of a node is good for so many seconds after the server's own time.
    """

    def __init__(self, options: Any) -> None:
        self._lifetime_seconds = options.attestation_auth_timeout
        self._known: dict[str, Trust] = {}
        self._server = options.attestation_server
        path = f"{options.attestation_port}{options.attestation_api_url}/PollHosts"
        self._url = f"https://{self._server}:{path}"
        self._headers = {"content-type": "application/json", "Accept": "application/json"}
        if options.attestation_auth_blob:
            self._headers["x-auth-blob"] = options.attestation_auth_blob
        insecure = options.attestation_insecure_ssl
        self._verify = True if insecure else options.attestation_server_ca_file or True

    def levels(self, asked: Collection[str], nodes: Collection[str], now: float) -> dict[str, str]:
        """Levels of trust of the nodes *asked* about, at the moment *now*.

        If one of them is not known well enough, all *nodes* of the fleet are asked about anew; a
        poll that fails leaves nothing known.
        """
        lifetime, known = self._lifetime_seconds, map(self._known.get, asked)
        if not all(each and lifetime > 0 and now - each.time <= lifetime for each in known):
            self._known = self.poll({*nodes, *asked}, now)
        return {node: self._known[node].level if node in self._known else UNKNOWN for node in asked}

    def poll(self, nodes: Collection[str], now: float) -> dict[str, Trust]:
        """Ask the server about *nodes* at the moment *now*; nothing if it does not answer.

        It may also speak of nodes that it was not asked about.
        """
        if not self._server:
            LOG.warning("No host can be trusted: [trusted_computing] attestation_server is unset.")
            return {}
        body: dict[str, Any] = {"count": len(nodes), "hosts": sorted(nodes)}
        try:
            answer = requests.post(
                self._url,
                json=body,
                headers=self._headers,
                verify=self._verify,
                timeout=ANSWER_SECONDS,
            )
            if answer.status_code not in _SUCCESS:
                LOG.warning("The attestation server answers with status %s.", answer.status_code)
                return {}
            return read_entries(answer.json()["hosts"], now)
        except (requests.RequestException, OSError) as error:
            LOG.warning("The attestation server cannot be asked: %s", error)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            LOG.warning("The attestation server's answer is not understood: %r", error)
        return {}


def read_entries(entries: Iterable[dict[str, Any]], now: float) -> dict[str, Trust]:
    """The trust in the entries of an answer, by node."""
    return {each["host_name"]: _trust(each, now) for each in entries}


def _trust(entry: dict[str, Any], now: float) -> Trust:
    """One entry of an answer; of unknown level, as of now, if its time cannot be read."""
    text, level = entry["vtime"], entry["trust_lvl"]
    try:
        when = timeutils.normalize_time(timeutils.parse_isotime(text))
    except ValueError:
        try:
            when = datetime.datetime.strptime(text, _LOCAL_TIME)
        except ValueError:
            return Trust(UNKNOWN, now)
    return Trust(level, when.replace(tzinfo=datetime.UTC).timestamp())


class TrustedFilter(HostFilter):
    """Passes nodes whose level of trust is the flavor's ``trust:trusted_host``, exactly."""

    run_filter_once_per_request = True
    reasons = (OTHER_LEVEL,)

    def __init__(self, conf: Any) -> None:
        super().__init__(conf)
        LOG.warning("TrustedFilter asks an attestation server while it decides.")
        self.service = AttestationService(conf.trusted_computing)

    def conditions(self, hosts: Candidates, request: Any) -> Iterator[Condition]:
        """Ask the server about all nodes at once if what is known of one has expired."""
        if wanted := extra_specs_of(request).get("trust:trusted_host"):
            nodes = {node for _host, node in hosts.table.rows if node is not None}
            asked = {state.nodename for state in hosts} - {None}
            levels = self.service.levels(asked, nodes, hosts.scope.now)
            yield OTHER_LEVEL, hosts.per_value("nodename", lambda node: levels.get(node) == wanted)
