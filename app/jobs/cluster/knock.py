"""Finds out whether anybody listens at an address."""

import asyncio
from urllib.parse import urlsplit

ANSWER_WITHIN_S = 5.0


async def knock(address: str) -> None:
    """Raises `OSError` if nobody does. Dask waits longer and longer between its own attempts to connect, so that
    nothing would run for seconds after a scheduler has come back."""
    place = urlsplit(address)
    connecting = asyncio.open_connection(place.hostname, place.port)
    _, writer = await asyncio.wait_for(connecting, ANSWER_WITHIN_S)
    writer.close()
