"""A small identity provider on loopback: discovery, authorization code with PKCE, ID tokens signed with its own key.

It checks what a real one checks. Tests can make it lie.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT, SECRET = "steelyard", "client secret"


class IdentityProvider:
    """`lies` replace claims of the ID tokens it issues; `signs_with` another key, or an algorithm without one."""

    def __init__(self, issuer: str, redirect: str) -> None:
        self.issuer, self.redirect = issuer, redirect
        self.key, self.other_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        self.codes: dict[str, dict[str, str]] = {}
        self.lies: dict[str, Any] = {}
        self.told_issuer = issuer
        self.forged = ""

    def configuration(self) -> dict[str, str]:
        return {
            "issuer": self.told_issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def keys(self) -> dict[str, Any]:
        key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**key, "kid": "1", "use": "sig", "alg": "ES256"}]}

    def authorize(self, given: dict[str, str]) -> str:
        """Where the browser goes back to; whoever asks is signed in here."""
        assert given["response_type"] == "code"
        assert (given["client_id"], given["redirect_uri"]) == (CLIENT, self.redirect)
        assert "openid" in given["scope"].split()
        assert given["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = given
        return f"{self.redirect}?{urlencode({'code': code, 'state': given['state'], 'iss': self.issuer})}"

    def token(self, form: dict[str, str]) -> dict[str, str] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
        wanted = {"grant_type": "authorization_code", "client_id": CLIENT, "client_secret": SECRET}
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form.get("redirect_uri"):
            return None
        if any(form.get(name) != value for name, value in wanted.items()):
            return None
        now = int(time.time())
        honest = {"iss": self.issuer, "sub": "248289761001", "aud": CLIENT, "iat": now, "exp": now + 300}
        claims = {**honest, "nonce": asked["nonce"], "email": "mei@example.com", "email_verified": True, **self.lies}
        claims = {name: value for name, value in claims.items() if value is not None}
        return {"access_token": "x", "token_type": "Bearer", "id_token": self._signed(claims)}

    def _signed(self, claims: dict[str, Any]) -> str:
        if self.forged == "none":
            return jwt.encode(claims, None, algorithm="none", headers={"kid": "1"})
        if self.forged == "shared secret":
            secret = json.dumps(self.keys()["keys"][0]).encode()
            return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": "1"})
        key = self.other_key if self.forged == "other key" else self.key
        return jwt.encode(claims, key, algorithm="ES256", headers={"kid": "1"})


@contextmanager
def identity_provider(redirect: str) -> Iterator[IdentityProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(303)
                self.send_header("Location", provider.authorize(dict(parse_qsl(parts.query))))
                self.end_headers()
            elif parts.path == "/keys":
                self._answer(provider.keys())
            else:
                assert parts.path == "/.well-known/openid-configuration"
                self._answer(provider.configuration())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer(provider.token(dict(parse_qsl(body))))

        def _answer(self, found: Any) -> None:
            self.send_response(200 if found else 400)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error": "invalid_grant"}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = IdentityProvider(f"http://127.0.0.1:{server.server_port}", redirect)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
