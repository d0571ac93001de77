"""``[trusted_computing]``: whom TrustedFilter asks.  Reference page config, section 3."""

from __future__ import annotations

from oslo_config import cfg

from scheduler.conf import registration

GROUP = cfg.OptGroup(
    "trusted_computing",
    title="Trusted computing",
    help="The attestation server that TrustedFilter asks.",
)

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "attestation_server",
        help="Name or address of the attestation server. Unset: no host is known to be trusted.",
    ),
    cfg.StrOpt(
        "attestation_server_ca_file",
        help="File with the certificates of the authorities that may have signed the server's. "
        "Unset: those of the system.",
    ),
    cfg.StrOpt(
        "attestation_port",
        default="8443",
        help="Port of the attestation server.",
    ),
    cfg.StrOpt(
        "attestation_api_url",
        default="/OpenAttestationWebServices/V1.0",
        help="Path of the attestation server's interface.",
    ),
    cfg.StrOpt(
        "attestation_auth_blob",
        secret=True,
        help="Text sent along as the header `x-auth-blob`. Unset: no such header.",
    ),
    cfg.IntOpt(
        "attestation_auth_timeout",
        default=60,
        help="For how many seconds after its own time stamp an answer about a host counts. 0 or "
        "less: the server is asked for every decision.",
    ),
    cfg.BoolOpt(
        "attestation_insecure_ssl",
        default=False,
        help="Whether attestation_server_ca_file is ignored. The server's certificate is checked "
        "all the same, against the authorities of the system.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Register the group's options on *conf*."""
    registration.register_group(conf, GROUP, OPTIONS)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group's options, for the sample file."""
    return [(GROUP, OPTIONS)]
