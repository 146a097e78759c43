"""Passwords as slow, salted hashes (scrypt), with their cost beside them so that it can grow."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import NamedTuple

from steelyard.errors import FormRefused

SHORTEST, LONGEST = 10, 1000


class Cost(NamedTuple):
    """scrypt's: 2**n × r × 128 bytes of memory, p times."""

    n: int
    r: int
    p: int


COST = Cost(15, 8, 3)


def check_strength(password: str, name: str) -> None:
    """Length counts; rules about signs only make people write passwords down."""
    if not SHORTEST <= len(password) <= LONGEST:
        problem = f"a password has {SHORTEST} to {LONGEST} characters"
        raise FormRefused(problem, "password_length", least=SHORTEST, most=LONGEST)
    if password.casefold() == name.casefold() or len(set(password)) < 4:
        raise FormRefused("that password is too easy to guess", "password_weak")


def hashed(password: str, cost: Cost | None = None) -> str:
    cost, salt = cost or COST, secrets.token_bytes(16)
    return "$".join(("scrypt", *map(str, cost), _text(salt), _text(_scrypt(password, salt, cost))))


def is_right(password: str, kept: str) -> bool:
    """Whether this is the password. Takes as long where there is none, so that nobody learns which users there are."""
    scheme, _, rest = kept.partition("$")
    if scheme != "scrypt" or len(password) > LONGEST:
        _scrypt(password[:LONGEST], b"\0" * 16, COST)
        return False
    n, r, p, salt, wanted = rest.split("$")
    found = _scrypt(password, base64.b64decode(salt), Cost(int(n), int(r), int(p)))
    return hmac.compare_digest(found, base64.b64decode(wanted))


def _scrypt(password: str, salt: bytes, cost: Cost) -> bytes:
    n, r, p = cost
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=2**n, r=r, p=p, maxmem=2 * 128 * r * 2**n + (1 << 20), dklen=32)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
