"""The setting `JOBS_ENGINE`: `embedded`, or the scheduler of a cluster."""

import re

EMBEDDED = "embedded"


class ClusterMisconfigured(Exception):
    """Found when a process opens the cluster; the message names the variables."""


_DASK = re.compile(r"dask://(?P<host>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[1-9][0-9]{0,4})/?")


def parse_engine(value: str) -> tuple[str, int] | None:
    """Host and port of the scheduler; None if there is no cluster. Raises `ValueError`."""
    if value == EMBEDDED:
        return None
    match = _DASK.fullmatch(value)
    if match is None or int(match["port"]) > 65_535:
        raise ValueError("must be embedded or dask://host:port")
    return match["host"], int(match["port"])
