"""The connections of delivery for other packages that fetch files. They are beside the contract because they load an
HTTP client, which takes 2 MB, and most of those who import the contract need none."""

from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.http_pools import HttpPools
from app.delivery.channels.http_url import parse_url

__all__ = ["HttpPools", "TimedBackend", "parse_url"]
