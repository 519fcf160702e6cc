"""What is done to a path before it is routed.

- Pulsar's paths are routed as they came, percent signs and all, since a name may hold an encoded slash; the routes
  decode each part by itself.
- The old form of a name has a cluster in it (property/cluster/namespace/topic), on paths of its own. It is left out,
  and the rest is served as the new form.
"""

import re
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["PulsarPaths", "new_form"]

_PULSAR: Final = re.compile(r"/(admin|lookup)/")
_OLD_TOPIC: Final = re.compile(r"/admin/(persistent|non-persistent|schemas)/([^/]+)/[^/]+/(.+)")
_OLD_NAMESPACE: Final = re.compile(r"/admin/namespaces/([^/]+)/[^/]+/([^/]+)(/.*)?")
_OLD_LOOKUP: Final = re.compile(r"/lookup/v2/destination/([^/]+)/([^/]+)/[^/]+/(.+)")


def new_form(path: str) -> str:
    """The path that serves an old one; the same if it is not old. Source: the paths that the C++ client asks for."""
    if path.startswith("/admin/v2/"):
        return path
    if old := _OLD_TOPIC.fullmatch(path):
        return f"/admin/v2/{old[1]}/{old[2]}/{old[3]}"
    if old := _OLD_LOOKUP.fullmatch(path):
        return f"/lookup/v2/topic/{old[1]}/{old[2]}/{old[3]}"
    if old := _OLD_NAMESPACE.fullmatch(path):
        rest = (old[3] or "").replace("/destinations", "/topics")
        return f"/admin/v2/namespaces/{old[1]}/{old[2]}{rest}"
    return path


class PulsarPaths:
    """Routes Pulsar's paths undecoded, and old ones as new ones."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _PULSAR.match(scope["path"]):
            raw = scope["raw_path"].decode("ascii", "replace")
            scope = {**scope, "path": new_form(raw)}
        await self._app(scope, receive, send)
