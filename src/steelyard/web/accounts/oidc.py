"""Signing in at an identity provider: OpenID Connect, authorization code with PKCE.

What a browser brings back counts only if the same browser set out for it (state), if it was made for this sign-in
(nonce, code verifier), by this provider (issuer, signature) and for this server (audience).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp

from steelyard.errors import ConfigError, MissingExtra
from steelyard.web.accounts.sign_in import digest, local_address

# Asymmetric ones only: with a shared secret, whoever can verify can also sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SECONDS = 10
LARGEST = 1 << 20
SKEW = 60


class ProviderRefused(Exception):
    """The provider, or what came back from it, does not let this browser in; the text is for the log."""


class PendingSignIn(NamedTuple):
    """The state of a sign-in, kept in a cookie of the browser that began it."""

    state: str
    nonce: str
    verifier: str
    next: str

    @classmethod
    def new(cls, back: str | None) -> PendingSignIn:
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        return cls(state, nonce, verifier, local_address(back))

    def packed(self) -> str:
        return base64.urlsafe_b64encode(json.dumps(self).encode()).decode()

    @classmethod
    def unpacked(cls, cookie: str) -> PendingSignIn:
        try:
            parts = json.loads(base64.urlsafe_b64decode(cookie))
            state, nonce, verifier, back = (str(part) for part in parts)
        except (ValueError, TypeError):
            raise ProviderRefused("this browser did not set out from here") from None
        if not (state and nonce and verifier):
            raise ProviderRefused("this browser did not set out from here")
        return cls(state, nonce, verifier, local_address(back))


class Person(NamedTuple):
    """The user as identified by the provider. `subject` never changes; the name is its preferred user name."""

    subject: str
    name: str
    fallback: str


@dataclass(frozen=True)
class OpenIdProvider:
    """An identity provider that knows this server as one of its clients."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect: str

    @classmethod
    def of(cls, issuer: str, client_id: str, client_secret: str, url: str) -> OpenIdProvider:
        try:
            import jwt  # noqa: F401
        except ImportError:
            raise MissingExtra("pyjwt", "oidc", "signing in by OpenID Connect") from None
        _check_address(issuer)
        return cls(issuer, client_id, client_secret, f"{url}/login/oidc/callback")

    @property
    def name(self) -> str:
        return urlsplit(self.issuer).hostname or self.issuer

    async def departure(self, leaving: PendingSignIn) -> str:
        """The provider's address to which the browser is sent to sign in."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(leaving.verifier.encode()).digest()).rstrip(b"=").decode()
        given = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "scope": "openid email profile",
            "state": leaving.state,
            "nonce": leaving.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        async with _session() as session:
            address = (await self._discovered(session))["authorization_endpoint"]
        return f"{address}{'&' if '?' in address else '?'}{urlencode(given)}"

    async def arrival(self, left: PendingSignIn, given: dict[str, str]) -> Person:
        """The user who signed in. `given` are the parameters of the provider's redirect."""
        if not hmac.compare_digest(given.get("state", "").encode(), left.state.encode()):
            raise ProviderRefused("the state is not that of this browser")
        if given.get("iss", self.issuer) != self.issuer:
            raise ProviderRefused("another provider answered")
        if "code" not in given:
            raise ProviderRefused(f"the provider said: {given.get('error', 'nothing')[:100]}")
        async with _session() as session:
            endpoints = await self._discovered(session)
            form = {
                "grant_type": "authorization_code",
                "code": given["code"],
                "redirect_uri": self.redirect,
                "client_id": self.client_id,
                "client_secret": self.client_secret,
                "code_verifier": left.verifier,
            }
            answer = await _json(session.post(endpoints["token_endpoint"], data=form, allow_redirects=False))
            keys = await _json(session.get(endpoints["jwks_uri"], allow_redirects=False))
        return self._person(_checked(answer.get("id_token"), keys, self.issuer, self.client_id, left.nonce))

    async def _discovered(self, session: aiohttp.ClientSession) -> dict[str, str]:
        address = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        configuration = await _json(session.get(address, allow_redirects=False))
        if configuration.get("issuer") != self.issuer:
            raise ProviderRefused(f"{address} speaks for another issuer")
        found = {name: configuration.get(name) for name in ENDPOINTS}
        for one in found.values():
            if not isinstance(one, str):
                raise ProviderRefused(f"{address} lacks an endpoint")
            _check_address(one)
        return {name: str(one) for name, one in found.items()}

    def _person(self, claims: dict[str, Any]) -> Person:
        fallback = f"{digest(claims['sub'])[:12]}@{self.name}"
        # An address that the provider has not verified may be anybody's.
        email = claims.get("email") if claims.get("email_verified") is True else None
        name = email if isinstance(email, str) and email.isprintable() and 0 < len(email) <= 200 else fallback
        return Person(f"{self.issuer} {claims['sub']}", name.strip(), fallback)


def _checked(token: object, keys: dict[str, Any], issuer: str, client: str, nonce: str) -> dict[str, Any]:
    """The claims of an ID token, if it was signed by the issuer, for this client, for this sign-in."""
    import jwt

    if not isinstance(token, str):
        raise ProviderRefused("there is no ID token in the answer")
    try:
        named = jwt.get_unverified_header(token).get("kid")
        known = [key for key in jwt.PyJWKSet.from_dict(keys).keys if key.public_key_use in (None, "sig")]
        fitting = [key for key in known if key.key_id == named] if named else known
        if len(fitting) != 1:
            raise ProviderRefused("the ID token is signed with a key that the provider does not name")
        claims: dict[str, Any] = jwt.decode(
            token,
            fitting[0],
            algorithms=ALGORITHMS,
            audience=client,
            issuer=issuer,
            leeway=SKEW,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise ProviderRefused(f"the ID token is not right: {error}") from None
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if (several or "azp" in claims) and claims.get("azp") != client:
        raise ProviderRefused("the ID token was issued to another client")
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise ProviderRefused("the ID token is of another sign-in")
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
        raise ProviderRefused("the ID token names nobody")
    return claims


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS))


async def _json(asking: Any) -> dict[str, Any]:
    try:
        async with asking as answer:
            content = await answer.content.read(LARGEST)
            if answer.status != 200:
                raise ProviderRefused(f"{answer.url.path} answered {answer.status}")
            found = json.loads(content)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ProviderRefused(f"the provider cannot be read: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise ProviderRefused("the provider answered no object")
    return found


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ConfigError(f"an identity provider is reached by https:// only, not {address!r}")
