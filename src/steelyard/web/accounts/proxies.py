"""What a reverse proxy says about a request. Only proxies that were named are believed."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from starlette.requests import Request

from steelyard.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED_FOR = "x-forwarded-for"


@dataclass(frozen=True)
class Proxies:
    """The proxies before this server, and the header in which they name the user, if they do."""

    networks: tuple[Network, ...] = ()
    user_header: str | None = None

    @classmethod
    def of(cls, named: list[str], user_header: str | None = None) -> Proxies:
        if user_header and not named:
            raise ConfigError("--proxy-user-header needs --trusted-proxy: who may say who the user is")
        try:
            return cls(tuple(ipaddress.ip_network(text) for text in named), user_header)
        except ValueError as error:
            raise ConfigError(f"--trusted-proxy takes an address or a network: {error}") from None

    def address_of(self, request: Request) -> str:
        """Where a request comes from: the last address that was not a trusted proxy's own."""
        peer = request.client.host if request.client else ""
        hops = [hop.strip() for value in request.headers.getlist(FORWARDED_FOR) for hop in value.split(",")]
        while hops and self._trusts(peer):
            peer = hops.pop()
        return peer[:100]

    def user_of(self, request: Request) -> str | None:
        """Whom a trusted proxy names; None where none does. A header that comes twice names nobody."""
        peer = request.client.host if request.client else ""
        if self.user_header is None or not self._trusts(peer):
            return None
        names = request.headers.getlist(self.user_header)
        return names[0] if len(names) == 1 and names[0] else None

    def _trusts(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)
