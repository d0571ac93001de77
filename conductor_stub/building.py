"""The second half of ``build_instances``: book a host, write the rows, tell the host.

Reference page conductor, section 5, step 6 (section 4, step 4).  Each instance is on its own
here: whatever goes wrong with one ends that one's build and no other's.
"""

from __future__ import annotations

from dataclasses import dataclass

from oslo_log import log as logging

from conductor_stub import claims, hooks, retry
from conductor_stub.claims import Claims
from conductor_stub.compute_rpcapi import ComputeAPI
from conductor_stub.failure import FailureBranch
from conductor_stub.hooks import BuildHooks
from conductor_stub.records import BuildCast, Candidate, Plan
from conductor_stub.rows import BuildRows, Prepared
from scheduler import errors, objects

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Builder:
    """Sends the instances of a plan to their hosts; *claims* books alternates first."""

    rows: BuildRows
    compute: ComputeAPI
    failures: FailureBranch
    hooks: BuildHooks
    claims: Claims

    def build(self, plan: Plan, instance: objects.Instance, candidates: list[Candidate]) -> None:
        """Build *instance* on the first of *candidates* that can be had.

        Never raises for the instance's own troubles: gone, it is left alone; else it ends in
        ERROR.
        """
        order = plan.order
        try:
            self._build(plan, instance, candidates)
        except errors.InstanceNotFound:
            LOG.debug("Instance deleted during build", extra={"instance_uuid": instance.uuid})
        except Exception as error:
            LOG.debug("Instance %s is not built", instance.uuid, exc_info=True)
            attempts = retry.attempts(plan.filter_properties)
            self.failures.fail(
                order, instance, error, plan.legacy_spec, attempts, plan.request_spec
            )

    def _build(self, plan: Plan, instance: objects.Instance, candidates: list[Candidate]) -> None:
        position = self._choose(plan, instance.uuid, candidates)
        chosen, rest = candidates[position], candidates[position + 1 :]
        properties = retry.populate_filter_properties(
            plan.filter_properties, chosen.host, chosen.node, chosen.limits
        )
        attempts = retry.attempts(properties)
        zone_from_host = self.compute.takes_spec_objects()
        prepared = self.rows.prepare(instance, chosen, attempts, zone_from_host)
        if prepared is None:
            self._drop(plan, instance)
            return
        if attempts > 1:
            self._renew_attachments(plan, prepared)
        cast = BuildCast(
            order=plan.order,
            instance=prepared.instance,
            request_spec=self._spec_for_host(plan, properties, chosen),
            legacy_spec=plan.legacy_spec,
            filter_properties=properties,
            block_device_mapping=prepared.block_devices,
            node=chosen.node,
            limits=chosen.limits,
            host_list=[each.selection for each in rest if each.selection is not None],
            accel_uuids=self._accelerators(plan, prepared.instance, chosen.node),
        )
        _log_selected(prepared.instance.uuid, chosen, rest)
        self.compute.build_and_run_instance(plan.order.context, chosen.host, cast)

    def _choose(self, plan: Plan, uuid: str, candidates: list[Candidate]) -> int:
        if plan.needs_claim:
            context = plan.order.context.elevated()
            position = claims.book_first(self.claims.claim, context, plan.spec, uuid, candidates)
            claims.booked_providers(plan.request_spec, candidates[position])
            return position
        if not candidates:
            raise errors.NoValidHost(reason=f"The scheduler named no host for instance {uuid}.")
        return 0  # the scheduler has booked it already

    def _drop(self, plan: Plan, instance: objects.Instance) -> None:
        """The user cancelled the build: what was booked for it is free again."""
        self.claims.release(plan.order.context.elevated(), instance.uuid)
        if plan.is_new:
            self.rows.destroy(instance.uuid)

    @staticmethod
    def _spec_for_host(
        plan: Plan, properties: dict[str, object], chosen: Candidate
    ) -> objects.RequestSpec:
        if plan.is_new:
            spec = plan.spec.copy()
            claims.booked_providers(spec, chosen)
            return spec
        spec = objects.RequestSpec.from_primitives(plan.legacy_spec, properties)
        if plan.request_spec is not None:
            spec.requested_resources = plan.request_spec.requested_resources
        return spec

    def _renew_attachments(self, plan: Plan, prepared: Prepared) -> None:
        for device in prepared.block_devices:
            if device.destination_type != "volume" or not device.attachment_id:
                continue
            renewed = self.hooks.renew_attachment(plan.order.context, prepared.instance, device)
            if renewed is not None:
                device.attachment_id = renewed
                self.rows.save_attachment(device)

    def _accelerators(self, plan: Plan, instance: objects.Instance, node: str | None) -> list[str]:
        profile = hooks.device_profile(instance.flavor)
        if profile is None:
            return []
        try:
            return self.hooks.request_accelerators(
                plan.order.context, instance, profile, plan.spec, node
            )
        except Exception as error:
            LOG.exception("Failed to reschedule. Reason: %s", error)
            raise


def _log_selected(uuid: str, chosen: Candidate, rest: list[Candidate]) -> None:
    LOG.debug(
        "Selected host: %s; Selected node: %s; Alternates: %s",
        chosen.host,
        chosen.node,
        [(each.host, each.node) for each in rest],
        extra={"instance_uuid": uuid},
    )
