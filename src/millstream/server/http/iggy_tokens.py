"""Personal access tokens of the Iggy protocol: each user's own."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from millstream.server.http.iggy_call import CallArgument, iggy_router, served
from millstream.sessions.iggy import users
from millstream.wire.iggy.messages.system import Empty
from millstream.wire.iggy.messages.users import CreateToken, TokenRequest

__all__ = ["router"]

router = iggy_router()


class NewToken(BaseModel):
    """A token to be made; `expiry` in microseconds, 0 and 2^64-1 for never."""

    name: str
    expiry: Annotated[int, Field(ge=0, lt=2**64)]


@router.get("/personal-access-tokens")
async def get_tokens(call: CallArgument) -> list[dict[str, Any]]:
    """The names of the tokens, and when they expire."""
    told = await served(call, users.get_tokens, Empty())
    return [{"name": one.name, "expiry_at": one.expiry_at_us or None} for one in told.tokens]


@router.post("/personal-access-tokens")
async def create_token(call: CallArgument, body: NewToken) -> dict[str, str]:
    """Make a token, which is told this once."""
    made = await served(call, users.create_token, CreateToken(name=body.name, expiry_us=body.expiry))
    return {"token": made.token}


@router.delete("/personal-access-tokens/{name}", status_code=204)
async def delete_token(call: CallArgument, name: str) -> None:
    """Delete a token."""
    await served(call, users.delete_token, TokenRequest(name=name))
