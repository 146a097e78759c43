"""AWS Signature Version 4, for requests without a query: what Bedrock wants where there is no API key.

The recipe is public and small; botocore, which also looks for credentials in files and in the cloud, has 14 MB.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

from pydantic import SecretStr
from yarl import URL

ALGORITHM, END = "AWS4-HMAC-SHA256", "aws4_request"


class Signer(NamedTuple):
    """Signs requests to one service in one region."""

    access_key: str
    secret: SecretStr
    region: str
    service: str
    session_token: SecretStr | None = None

    def secrets(self) -> set[str]:
        """What must not be shown of it."""
        token = {self.session_token.get_secret_value()} if self.session_token else set()
        return {self.access_key, self.secret.get_secret_value(), *token}

    def headers(self, url: URL, body: bytes, now: datetime | None = None) -> dict[str, str]:
        """The headers that make a POST of this body authentic for a few minutes."""
        moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        signed = {"host": _host(url), "x-amz-date": moment}
        if self.session_token:
            signed["x-amz-security-token"] = self.session_token.get_secret_value()
        names = ";".join(signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        # The path is encoded as it is sent, and once more.
        path = quote(url.raw_path or "/", safe="/")
        request = "\n".join(["POST", path, "", lines, names, hashlib.sha256(body).hexdigest()])
        scope = f"{moment[:8]}/{self.region}/{self.service}/{END}"
        signed_text = "\n".join([ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()])
        signature = hmac.new(self._key(moment[:8]), signed_text.encode(), hashlib.sha256).hexdigest()
        del signed["host"]  # the HTTP client says it
        credential = f"Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return {**signed, "Authorization": f"{ALGORITHM} {credential}"}

    def _key(self, day: str) -> bytes:
        key = f"AWS4{self.secret.get_secret_value()}".encode()
        for part in (day, self.region, self.service, END):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


def _host(url: URL) -> str:
    return url.host or "" if url.is_default_port() else url.authority
