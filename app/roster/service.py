"""The front door of the roster."""
