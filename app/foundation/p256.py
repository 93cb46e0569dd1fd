"""The curve P-256, as far as keys of others are checked before anything is computed with them."""

POINT_BYTES = 65
_PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B


def is_point(encoded: bytes) -> bool:
    """True for a point of the curve in the uncompressed form: 4, x, y."""
    if len(encoded) != POINT_BYTES or encoded[0] != 4:
        return False
    x, y = int.from_bytes(encoded[1:33]), int.from_bytes(encoded[33:])
    return x < _PRIME and y < _PRIME and (y * y - (x * x * x - 3 * x + _B)) % _PRIME == 0
