"""Tenants and namespaces: finding, making, changing and deleting them. A namespace is a stream to Iggy clients."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from millstream.broker.documents import Document, Documents
from millstream.broker.namespaces.errors import (
    InvalidNamespaceName,
    NamespaceExists,
    NamespaceInUse,
    NamespaceNotEmpty,
    TenantExists,
    TenantNotEmpty,
    UnknownNamespace,
    UnknownTenant,
)
from millstream.broker.namespaces.policies import AutoTopicCreation, Policies
from millstream.broker.topics import Topic, Topics
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending
from millstream.model.runtime import Runtime
from millstream.model.topic_name import DEFAULT_NAMESPACE, DEFAULT_TENANT

__all__ = ["CLUSTER", "NAME_BYTES_MAX", "Namespace", "Namespaces", "Tenant"]

CLUSTER: Final = "standalone"
"""The name of the one cluster there is, as Pulsar's own single server calls it."""
NAME_BYTES_MAX: Final = 255
"""Bytes of the name of a tenant or a namespace: what an Iggy stream may have, the shortest bound of all protocols."""
_TENANT: Final = "tenant"
_NAMESPACE: Final = "namespace"
_COUNTER: Final = "counter"


@dataclass(slots=True)
class Tenant:
    """A tenant.

    Args:
        name: its name.
        admin_roles: who may administer it; kept for clients that set them: there is no authorization.
        allowed_clusters: kept likewise.
    """

    name: str
    admin_roles: tuple[str, ...] = ()
    allowed_clusters: tuple[str, ...] = (CLUSTER,)

    def document(self) -> Document:
        """What is stored of it."""
        return {"admin_roles": list(self.admin_roles), "allowed_clusters": list(self.allowed_clusters)}


@dataclass(slots=True)
class Namespace:
    """A namespace.

    Args:
        tenant, name: its full name.
        number: a number of its own, from 1 on, never used again: what Iggy clients know it by.
        created_ms: when it was made, ms since 1970.
        policies: what holds for its topics; replaced when they change.
    """

    tenant: str
    name: str
    number: int
    created_ms: int
    policies: Policies = field(default_factory=Policies)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}"

    @property
    def flat(self) -> str:
        """Its name where names are flat: `sales` in `public`, `acme.sales` in `acme`."""
        return _flat(self.tenant, self.name)

    def document(self) -> dict[str, Any]:
        """What is stored of it."""
        return {"number": self.number, "created_ms": self.created_ms, "policies": self.policies.document()}


class Namespaces:
    """All tenants and namespaces. The tenant `public` and its namespace `default` are always there.

    Args:
        runtime: the time.
        documents: where they last.
        topics: what tells whether a namespace is empty. A topic in a namespace that is not there brings it along.
        auto_create: whether a topic that a client asks for comes to be where no policy says otherwise.
    """

    def __init__(self, runtime: Runtime, documents: Documents, topics: Topics, *, auto_create: bool = True) -> None:
        self._runtime = runtime
        self._documents = documents
        self._topics = topics
        self._auto_create = AutoTopicCreation(auto_create)
        self._tenants: dict[str, Tenant] = {}
        self._namespaces: dict[tuple[str, str], Namespace] = {}
        self._by_flat: dict[str, Namespace] = {}
        for name, document in documents.of_kind(_TENANT).items():
            self._tenants[name] = _tenant(name, document)
        for key, document in documents.of_kind(_NAMESPACE).items():
            tenant, _, name = key.partition("/")
            self._enter(Namespace(tenant, name, document["number"], document["created_ms"], _policies(document)))
        counter = documents.find(_COUNTER, _NAMESPACE) or {}
        self._last_number = max(counter.get("last", 0), *(one.number for one in self), 0)
        self._ensure(DEFAULT_TENANT, DEFAULT_NAMESPACE)
        for topic in topics:
            self._ensure(topic.name.tenant, topic.name.namespace)

    def _ensure(self, tenant: str, name: str) -> None:
        if tenant not in self._tenants:
            self._put_tenant(Tenant(tenant))
        if (tenant, name) not in self._namespaces:
            self._put_new(tenant, name, Policies())

    def _enter(self, namespace: Namespace) -> None:
        self._namespaces[namespace.tenant, namespace.name] = namespace
        self._by_flat[namespace.flat] = namespace

    # Finding

    def __iter__(self) -> Iterator[Namespace]:
        return iter(list(self._namespaces.values()))

    def tenants(self) -> list[Tenant]:
        """All tenants, by name."""
        return [self._tenants[name] for name in sorted(self._tenants)]

    def tenant(self, name: str) -> Tenant:
        """A tenant. Raises UnknownTenant."""
        tenant = self._tenants.get(name)
        if tenant is None:
            raise UnknownTenant(f"there is no tenant {name}")
        return tenant

    def of_tenant(self, name: str) -> list[Namespace]:
        """The namespaces of a tenant, by name. Raises UnknownTenant."""
        self.tenant(name)
        return sorted((one for one in self._namespaces.values() if one.tenant == name), key=lambda one: one.name)

    def find(self, tenant: str, name: str) -> Namespace | None:
        """A namespace, None if there is none."""
        return self._namespaces.get((tenant, name))

    def get(self, tenant: str, name: str) -> Namespace:
        """A namespace. Raises UnknownTenant, UnknownNamespace."""
        namespace = self._namespaces.get((tenant, name))
        if namespace is None:
            self.tenant(tenant)
            raise UnknownNamespace(f"there is no namespace {tenant}/{name}")
        return namespace

    def check(self, tenant: str, name: str) -> None:
        """Check that a namespace is there. Raises UnknownTenant, UnknownNamespace."""
        self.get(tenant, name)

    def auto_creation(self, tenant: str, name: str) -> AutoTopicCreation:
        """Whether and how a topic of a namespace comes to be when it is asked for: its policy, or the server's."""
        namespace = self._namespaces.get((tenant, name))
        policy = namespace.policies.auto_topic_creation if namespace is not None else None
        return self._auto_create if policy is None else policy

    def by_flat_name(self, name: str) -> Namespace | None:
        """The namespace that flat-named protocols know under a name."""
        return self._by_flat.get(name)

    def topics_in(self, namespace: Namespace) -> list[Topic]:
        """The topics of a namespace, by name."""
        place = (namespace.tenant, namespace.name)
        return sorted((topic for topic in self._topics if topic.name[:2] == place), key=lambda topic: topic.name.name)

    # Making and changing

    def create_tenant(
        self, name: str, admin_roles: Sequence[str] = (), allowed_clusters: Sequence[str] = (CLUSTER,)
    ) -> Pending[None]:
        """Make a tenant; there at once, lasting once the answer is there.

        Raises:
            InvalidNamespaceName, TenantExists.
        """
        _check_name(name)
        if name in self._tenants:
            raise TenantExists(f"there is a tenant {name} already")
        return self._put_tenant(Tenant(name, tuple(admin_roles), tuple(allowed_clusters)))

    def update_tenant(self, name: str, admin_roles: Sequence[str], allowed_clusters: Sequence[str]) -> Pending[None]:
        """Change a tenant. Raises UnknownTenant."""
        self.tenant(name)
        return self._put_tenant(Tenant(name, tuple(admin_roles), tuple(allowed_clusters)))

    def _put_tenant(self, tenant: Tenant) -> Pending[None]:
        self._tenants[tenant.name] = tenant

        def take_back() -> None:
            document = self._documents.find(_TENANT, tenant.name)
            if document is None:
                self._tenants.pop(tenant.name, None)
            else:
                self._tenants[tenant.name] = _tenant(tenant.name, document)

        return _unless_stored(self._documents.put(_TENANT, tenant.name, tenant.document()), take_back)

    def create(self, tenant: str, name: str, policies: Policies | None = None) -> tuple[Namespace, Pending[None]]:
        """Make a namespace; there at once.

        Returns:
            The namespace, and what resolves once it lasts; if that fails with MetadataFailed, it is gone again.

        Raises:
            UnknownTenant, InvalidNamespaceName, NamespaceExists.
        """
        _check_name(name)
        self.tenant(tenant)
        if _flat(tenant, name) in self._by_flat:
            raise NamespaceExists(f"there is a namespace {_flat(tenant, name)} already")
        return self._put_new(tenant, name, policies or Policies())

    def _put_new(self, tenant: str, name: str, policies: Policies) -> tuple[Namespace, Pending[None]]:
        self._last_number += 1
        namespace = Namespace(tenant, name, self._last_number, self._runtime.now_ms(), policies)
        self._enter(namespace)
        self._documents.put(_COUNTER, _NAMESPACE, {"last": self._last_number})

        def take_back() -> None:
            if self._namespaces.get((tenant, name)) is namespace:
                self._leave(namespace)

        stored = self._documents.put(_NAMESPACE, str(namespace), namespace.document())
        return namespace, _unless_stored(stored, take_back)

    def _leave(self, namespace: Namespace) -> None:
        del self._namespaces[namespace.tenant, namespace.name]
        del self._by_flat[namespace.flat]

    def set_policies(self, namespace: Namespace, **changes: Any) -> Pending[None]:
        """Change some policies; obeyed at once, lasting once the answer is there.

        Args:
            namespace: whose.
            changes: fields of `Policies`, by name.

        Raises:
            InvalidPolicy.
        """
        namespace.policies = replace(namespace.policies, **changes)

        def take_back() -> None:
            document = self._documents.find(_NAMESPACE, str(namespace))
            if document is not None:
                namespace.policies = _policies(document)

        return _unless_stored(self._documents.put(_NAMESPACE, str(namespace), namespace.document()), take_back)

    def update_policies(self, namespace: Namespace, policies: Policies) -> Pending[None]:
        """Replace all policies; as `set_policies`."""
        changes: Mapping[str, Any] = {name: getattr(policies, name) for name in Policies.__slots__}
        return self.set_policies(namespace, **changes)

    def delete_tenant(self, name: str) -> Pending[None]:
        """Delete a tenant without namespaces.

        Raises:
            UnknownTenant, TenantNotEmpty, NamespaceInUse.
        """
        tenant = self.tenant(name)
        if name == DEFAULT_TENANT:
            raise NamespaceInUse(f"the tenant {DEFAULT_TENANT} cannot be deleted")
        if self.of_tenant(name):
            raise TenantNotEmpty(f"the tenant {name} has namespaces")
        del self._tenants[name]

        def take_back() -> None:
            self._tenants.setdefault(name, tenant)

        return _unless_stored(self._documents.delete(_TENANT, name), take_back)

    def delete(self, namespace: Namespace) -> Pending[None]:
        """Delete a namespace without topics.

        Raises:
            UnknownNamespace: it was deleted already.
            NamespaceNotEmpty, NamespaceInUse.
        """
        if self._namespaces.get((namespace.tenant, namespace.name)) is not namespace:
            raise UnknownNamespace(f"there is no namespace {namespace}")
        if (namespace.tenant, namespace.name) == (DEFAULT_TENANT, DEFAULT_NAMESPACE):
            raise NamespaceInUse(f"the namespace {namespace} cannot be deleted")
        if self.topics_in(namespace):
            raise NamespaceNotEmpty(f"the namespace {namespace} has topics")
        self._leave(namespace)

        def take_back() -> None:
            if namespace.flat not in self._by_flat:
                self._enter(namespace)

        return _unless_stored(self._documents.delete(_NAMESPACE, str(namespace)), take_back)


def _tenant(name: str, document: Document) -> Tenant:
    roles, clusters = document.get("admin_roles", ()), document.get("allowed_clusters", (CLUSTER,))
    return Tenant(name, tuple(roles), tuple(clusters))


def _policies(document: Document) -> Policies:
    return Policies.of_document(document.get("policies", {}))


def _flat(tenant: str, name: str) -> str:
    return name if tenant == DEFAULT_TENANT else f"{tenant}.{name}"


def _check_name(name: str) -> None:
    if "/" in name or not name.isprintable():
        raise InvalidNamespaceName(f"a name has no slash and no unprintable character, and {name!r} has")
    if not name or len(name.encode()) > NAME_BYTES_MAX:
        raise InvalidNamespaceName(f"a name has 1 to {NAME_BYTES_MAX} bytes")


def _unless_stored(stored: Pending[None], take_back: Callable[[], None]) -> Pending[None]:
    """The same pending answer, with something that is undone if it fails."""

    def look(pending: Pending[None]) -> None:
        try:
            pending.result()
        except MillstreamError:
            take_back()

    stored.when_done(look)
    return stored
