"""How an unexpected error is told in the logs: what it is and where, but not its text.

The text may quote what was being sent or stored, and with it the token of a phone or the words for a person.
"""

import traceback


def describe(error: Exception) -> dict[str, str]:
    return {"error_type": type(error).__name__, "place": "".join(traceback.format_tb(error.__traceback__))}
