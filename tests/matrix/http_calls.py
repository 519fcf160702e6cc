"""Calls of the HTTP APIs of Pulsar and Iggy."""

import json
import urllib.request
from typing import Any

__all__ = ["call", "iggy_token"]

_TIMEOUT_S = 20


def call(address: str, method: str, path: str, body: object = None, *, token: str = "") -> Any:
    """Call; gives the answer's JSON, None if it is empty. Raises HTTPError if it is refused."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"http://{address}{path}", content, headers, method=method)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        told = answer.read()
        return json.loads(told) if told else None


def iggy_token(address: str) -> str:
    """Log in to Iggy's API."""
    login = call(address, "POST", "/users/login", {"username": "iggy", "password": "iggy"})
    return str(login["access_token"]["token"])
