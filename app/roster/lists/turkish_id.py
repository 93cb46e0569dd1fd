"""The number of a person in Turkey: eleven digits, the last two of which follow from the others."""

_CHECKED_DIGITS = 9


def _weights(first_place: int) -> dict[str, int]:
    """By three digits, their share of the tenth digit and their sum as one number, so that one addition adds both."""
    weights: dict[str, int] = {}
    for number in range(1000):
        text = f"{number:03}"
        tenth = sum(int(digit) * (7 if (first_place + n) % 2 == 0 else -1) for n, digit in enumerate(text))
        weights[text] = tenth % 10 * 1000 + sum(map(int, text))
    return weights


_EVEN, _ODD = _weights(0), _weights(1)


def is_turkish_id(text: str) -> bool:
    """By tables, because a list has millions of them."""
    try:
        both = _EVEN[text[0:3]] + _ODD[text[3:6]] + _EVEN[text[6:_CHECKED_DIGITS]]
    except KeyError:
        return False
    tenth = both // 1000 % 10
    return text[_CHECKED_DIGITS:] == f"{tenth}{(both % 1000 + tenth) % 10}" and text[0] != "0"
