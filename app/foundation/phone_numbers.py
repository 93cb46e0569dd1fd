"""Different spellings of the same phone number become equal: +905321234567."""

import re

# Characters that people, address books and word processors put between digits.
_BETWEEN_DIGITS = re.compile(r"[ \u00a0\u202f()\-\u2010-\u2013]")
_PHONE = re.compile(r"\+[1-9][0-9]{7,14}")


class InvalidPhone(ValueError):
    """The text never contains the number."""


def canonical_phone(text: str, country_code: str) -> str:
    # In +90 (0) 555 the zero is only for calls within the country.
    digits = _BETWEEN_DIGITS.sub("", text.replace("(0)", "") if text.startswith(("+", "00")) else text)
    if digits.startswith("00"):
        digits = f"+{digits[2:]}"
    elif digits.startswith("0"):
        digits = f"+{country_code}{digits[1:]}"
    elif not digits.startswith("+"):
        raise InvalidPhone("must begin with + and the country, or with 0 for a number of this country")
    if not _PHONE.fullmatch(digits):
        raise InvalidPhone("must be a phone number of 8 to 15 digits with its country, such as +90 555 123 45 67")
    return digits
