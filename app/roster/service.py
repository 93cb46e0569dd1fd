"""The front door of the roster."""

from app.roster.nightly import sync
from app.roster.runs import approve_run, get_run, list_runs

__all__ = ["approve_run", "get_run", "list_runs", "sync"]
