"""Tells secrets that somebody could guess from random ones. The messages never repeat the secret."""

import re

FEWEST_CHARACTERS = 32
FEWEST_DIFFERENT = 6
FEWEST_DIFFERENT_TRIPLES = 20
ADVICE = "take a random one, such as `openssl rand -hex 32` prints"

_WORDS = """
admin and auth be change changed changeme changeit char chars character characters default demo dev development enter
example fixme for generate guest here insecure insert jwt key least letmein local long me must my not only pass
passphrase passwd password placeholder please postgres prod production random redis replace root safe sample secret
secrets secure set some string super test testing tests the this to todo token use value very webhook welcome with
yaninda you your
"""
_WORD = re.compile("|".join(sorted(_WORDS.split(), key=len, reverse=True)))


def is_known_default(secret: str) -> bool:
    """True for `changeme`, `your-256-bit-secret` and everything else that is made of the words of placeholders, however
    often they are repeated. Of a random secret, other letters are left."""
    rest, words = _WORD.subn("", secret.lower())
    return words > 0 and sum(letter.isalpha() for letter in rest) < 4


def problem_with_secret(secret: str) -> str | None:
    """Why a secret is not safe; None if it is."""
    if is_known_default(secret):
        return f"is a known default; {ADVICE}"
    if len(secret) < FEWEST_CHARACTERS:
        return f"must have at least {FEWEST_CHARACTERS} characters; {ADVICE}"
    triples = {secret[start : start + 3] for start in range(len(secret) - 2)}
    if len(set(secret)) < FEWEST_DIFFERENT or len(triples) < FEWEST_DIFFERENT_TRIPLES:
        return f"repeats too few characters to be random; {ADVICE}"
    return None
