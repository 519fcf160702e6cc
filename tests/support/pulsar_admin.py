"""Calls of Pulsar's HTTP API, as scripts make them."""

import json
import urllib.request
from typing import Any

__all__ = ["administer"]

_TIMEOUT_S = 20.0


def administer(address: str, method: str, path: str, body: Any = None) -> Any:
    """Make a call; gives what the answer holds. A refusal is an HTTPError.

    Args:
        address: HOST:PORT of the server.
        path: below /admin/v2/.
        body: sent as JSON; None for nothing.
    """
    content = None if body is None else json.dumps(body).encode()
    headers = {} if content is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{address}/admin/v2/{path}", content, headers, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        text = answer.read()
    return json.loads(text) if text else None
