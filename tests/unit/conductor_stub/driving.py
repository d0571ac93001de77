"""Asking the conductor for builds, and looking at what it left behind."""

from oslo_messaging.rpc import dispatcher

from conductor_stub import server_rows, wire_objects
from scheduler import objects
from scheduler.rpc.context import RequestContext


def build(conductor, asked_for, properties=None, image=None, **later):
    conductor.manager.build_instances(
        RequestContext(user_id="user", project_id="project"),
        instances=asked_for,
        image={"id": "image", "properties": {}} if image is None else image,
        filter_properties={"scheduler_hints": {}} if properties is None else properties,
        admin_password="secret",
        injected_files=[],
        requested_networks=later.pop("requested_networks", None),
        security_groups=["default"],
        **later,
    )


def call(method, *arguments, **named):
    """Call an RPC method; raise what its caller is answered with."""
    try:
        return method(*arguments, **named)
    except dispatcher.ExpectedException as expected:
        raise expected.exc_info[1] from None


def fault(conductor, instance):
    with conductor.database.read() as conn:
        return server_rows.latest_faults(conn, [instance.uuid]).get(instance.uuid)


def attempts(conductor, instance):
    return conductor.row(instance).system_metadata.get("nova_scheduler_attempts")


def request_spec(instance, **changes):
    values = {
        "num_instances": 1,
        "instance_uuid": instance.uuid,
        "flavor": instance.flavor,
        "project_id": instance.project_id,
        "image": objects.ImageMeta(id="image"),
    }
    return objects.RequestSpec(**{**values, **changes})


def tried(count=1, **more):
    return {"retry": {"num_attempts": count, "hosts": [["cmp0", "cmp0"]], **more}}


def wanted_of(instance):
    """The build request of *instance*, as the API of today sends it."""
    uuid, project_id = instance.uuid, instance.project_id
    return wire_objects.BuildRequest(instance_uuid=uuid, project_id=project_id, instance=instance)


def specs_of(wanted, **changes):
    return [request_spec(each.instance, num_instances=len(wanted), **changes) for each in wanted]


def start(conductor, wanted, specs=None, **arguments):
    conductor.manager.schedule_and_build_instances(
        RequestContext(user_id="user", project_id="project"),
        build_requests=wanted,
        request_specs=specs_of(wanted) if specs is None else specs,
        image={"id": "image"},
        admin_password="secret",
        injected_files=[],
        requested_networks=None,
        **arguments,
    )
