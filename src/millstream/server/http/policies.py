"""The policies of a namespace, one by one: reading, setting, and taking back what was set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from millstream.broker.namespaces import CLUSTER, Namespace, Policies
from millstream.server.http.arguments import (
    AnyBody,
    NamespaceArgument,
    SiteArgument,
    as_boolean,
    as_integer,
    as_object,
    as_word,
    takes,
)
from millstream.server.http.policy_forms import (
    auto_creation_form,
    quota_form,
    read_auto_creation,
    read_quota,
    read_retention,
    read_strategy,
    retention_form,
)
from millstream.server.http.site import outcome

__all__ = ["POLICIES", "router"]

router = APIRouter(prefix="/admin/v2/namespaces/{tenant}/{namespace}", tags=["policies of namespaces"])
_NOTHING: Final = 204


@dataclass(frozen=True, slots=True)
class _Policy:
    """A policy that has a path of its own.

    Args:
        path: its path below the namespace's.
        field: of `Policies`.
        doc: what it says, for OpenAPI.
        read: what a body means.
        form: what a value that was set is shown as.
        body: the type of the body in OpenAPI.
        verb: the method that sets it.
        removable: whether it can be taken back to what it was before anybody set it.
        obeyed: whether this server acts on it; others are kept for clients that set them.
    """

    path: str
    field: str
    doc: str
    read: Callable[[Any], Any] = as_integer
    form: Callable[[Any], Any] = lambda value: value
    body: str = "integer"
    verb: str = "POST"
    removable: bool = True
    obeyed: bool = True


def _auto_subscription(body: Any) -> bool:
    return as_boolean(as_object(body).get("allowAutoSubscriptionCreation", True))


def _auto_subscription_form(value: bool) -> Mapping[str, bool]:
    return {"allowAutoSubscriptionCreation": value}


def _kept(path: str, field: str, doc: str) -> _Policy:
    return _Policy(path, field, doc, obeyed=False)


POLICIES: Final = (
    _Policy(
        "deduplication", "deduplication", "whether messages sent twice are kept once", as_boolean, body="boolean"
    ),
    _Policy(
        "retention",
        "retention",
        "what is kept of messages that every subscription has acknowledged",
        lambda body: read_retention(as_object(body)),
        retention_form,
        body="object",
    ),
    _Policy("messageTTL", "message_ttl_s", "seconds after which messages count as acknowledged"),
    _Policy(
        "schemaCompatibilityStrategy",
        "schema_compatibility",
        "the rule by which a schema may follow others",
        lambda body: read_strategy(as_word(body)),
        lambda value: value.value,
        body="string",
        verb="PUT",
        removable=False,
    ),
    _Policy(
        "schemaValidationEnforced",
        "schema_validation_enforced",
        "whether producers without a schema are refused where there is one",
        as_boolean,
        body="boolean",
        removable=False,
    ),
    _Policy(
        "isAllowAutoUpdateSchema",
        "schema_auto_update",
        "whether producers may bring new versions of a schema",
        as_boolean,
        body="boolean",
        removable=False,
    ),
    _Policy(
        "autoTopicCreation",
        "auto_topic_creation",
        "whether and how topics come to be when they are asked for",
        lambda body: read_auto_creation(as_object(body)),
        auto_creation_form,
        body="object",
    ),
    _Policy(
        "autoSubscriptionCreation",
        "auto_subscription_creation",
        "whether subscriptions come to be when they are asked for",
        _auto_subscription,
        _auto_subscription_form,
        body="object",
    ),
    _Policy("maxProducersPerTopic", "producers_per_topic_max", "producers of one topic, 0 for no bound"),
    _Policy("maxTopicsPerNamespace", "topics_max", "topics made here over HTTP, 0 for no bound"),
    _Policy("maxConsumersPerTopic", "consumers_per_topic_max", "consumers of one topic, 0 for no bound"),
    _Policy("maxConsumersPerSubscription", "consumers_per_subscription_max", "consumers of one subscription"),
    _Policy("maxSubscriptionsPerTopic", "subscriptions_per_topic_max", "subscriptions of one topic"),
    _kept("maxUnackedMessagesPerConsumer", "unacknowledged_per_consumer_max", "messages without acknowledgement"),
    _kept(
        "maxUnackedMessagesPerSubscription", "unacknowledged_per_subscription_max", "messages without acknowledgement"
    ),
    _Policy(
        "compactionThreshold",
        "compaction_threshold_bytes",
        "bytes of log at which a topic is compacted",
        verb="PUT",
        obeyed=False,
    ),
)
"""The policies with a path of their own; the documentation is written from them."""
_UNSET: Final = Policies()


def _add(policy: _Policy) -> None:
    kept = "" if policy.obeyed else " This server keeps it for clients that set it, and does not act on it yet."

    async def show(found: NamespaceArgument) -> Any:
        value = getattr(found.policies, policy.field)
        return Response(status_code=_NOTHING) if value is None else policy.form(value)

    async def change(site: SiteArgument, found: NamespaceArgument, body: AnyBody) -> None:
        await _set(site, found, **{policy.field: policy.read(body)})

    async def take_back(site: SiteArgument, found: NamespaceArgument) -> None:
        await _set(site, found, **{policy.field: getattr(_UNSET, policy.field)})

    path = f"/{policy.path}"
    name = policy.path
    router.add_api_route(
        path,
        show,
        methods=["GET"],
        name=f"get {name}",
        description=f"Tells {policy.doc}.{kept} 204 if it is not set.",
    )
    router.add_api_route(
        path,
        change,
        methods=[policy.verb],
        name=f"set {name}",
        description=f"Sets {policy.doc}.{kept}",
        status_code=_NOTHING,
        openapi_extra=takes(policy.body),
    )
    if policy.removable:
        router.add_api_route(
            path,
            take_back,
            methods=["DELETE"],
            name=f"remove {name}",
            description=f"Leaves it to the server: {policy.doc}.",
            status_code=_NOTHING,
        )


for _one in POLICIES:
    _add(_one)


async def _set(site: SiteArgument, found: Namespace, **changes: Any) -> None:
    await outcome(site.broker.namespaces.set_policies(found, **changes))


# Policies with a shape of their own


@router.get("/backlogQuotaMap")
async def backlog_quotas(found: NamespaceArgument) -> dict[str, Any]:
    """How far subscriptions may fall behind, by what is bounded. Kept, and not acted on yet."""
    return {kind: quota_form(quota) for kind, quota in found.policies.backlog_quotas.items()}


@router.post("/backlogQuota", status_code=_NOTHING, openapi_extra=takes("object"))
async def set_backlog_quota(
    site: SiteArgument,
    found: NamespaceArgument,
    body: AnyBody,
    backlogQuotaType: str = "destination_storage",  # noqa: N803 - as it stands in the query
) -> None:
    """Bound how far subscriptions may fall behind. Kept, and not acted on yet."""
    if backlogQuotaType not in ("destination_storage", "message_age"):
        raise HTTPException(412, f"there is no backlogQuotaType {backlogQuotaType!r}")
    quotas = {**found.policies.backlog_quotas, backlogQuotaType: read_quota(as_object(body))}
    await _set(site, found, backlog_quotas=quotas)


@router.delete("/backlogQuota", status_code=_NOTHING)
async def remove_backlog_quota(
    site: SiteArgument,
    found: NamespaceArgument,
    backlogQuotaType: str = "destination_storage",  # noqa: N803 - as it stands in the query
) -> None:
    """Take a bound back."""
    quotas = {kind: quota for kind, quota in found.policies.backlog_quotas.items() if kind != backlogQuotaType}
    await _set(site, found, backlog_quotas=quotas)


@router.get("/permissions")
async def permissions(found: NamespaceArgument) -> dict[str, list[str]]:
    """What each role may do. Kept for clients that set it: there is no authorization."""
    return {role: list(actions) for role, actions in found.policies.permissions.items()}


@router.post("/permissions/{role}", status_code=_NOTHING, openapi_extra=takes("array"))
async def grant(site: SiteArgument, found: NamespaceArgument, role: str, body: AnyBody) -> None:
    """Note what a role may do."""
    if not isinstance(body, list) or not all(isinstance(action, str) for action in body):
        raise HTTPException(400, "the body is a list of actions")
    await _set(site, found, permissions={**found.policies.permissions, unquote(role): tuple(body)})


@router.delete("/permissions/{role}", status_code=_NOTHING)
async def revoke(site: SiteArgument, found: NamespaceArgument, role: str) -> None:
    """Forget what a role may do."""
    name = unquote(role)
    left = {one: actions for one, actions in found.policies.permissions.items() if one != name}
    await _set(site, found, permissions=left)


@router.get("/replication")
async def replication(found: NamespaceArgument) -> list[str]:
    """The clusters that have the namespace: the one there is."""
    return [CLUSTER]


@router.post("/replication", status_code=_NOTHING, openapi_extra=takes("array"))
async def set_replication(found: NamespaceArgument, body: AnyBody) -> None:
    """Accepted for the one cluster there is."""
    if body != [CLUSTER]:
        raise HTTPException(412, f"this server has one cluster, {CLUSTER}")
