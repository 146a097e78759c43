"""`serve`: the viewer and the HTTP API for a team, with users, roles and projects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.common import ConfigOption, PageLangOption, StoreOption, language
from steelyard.cli.view import WILDCARDS
from steelyard.errors import ConfigError


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Which port.")] = 8321,
    url: Annotated[
        str | None,
        typer.Option(
            help="The address that browsers open, e.g. https://steelyard.example.com; default: as it listens."
        ),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="TLS certificate with its chain (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the TLS certificate (PEM).")] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS|NETWORK", help="A trusted proxy, whose X-Forwarded-For is used; may be repeated."
        ),
    ] = None,
    proxy_user_header: Annotated[
        str | None,
        typer.Option(help="Header in which a trusted proxy names the user, e.g. X-Forwarded-User; default: none."),
    ] = None,
    oidc_issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Identity provider (OpenID Connect) where users may sign in."),
    ] = None,
    oidc_client_id: Annotated[
        str | None,
        typer.Option(help="What the provider calls this server; the secret is read from STEELYARD_OIDC_SECRET."),
    ] = None,
    lang: PageLangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Serve the viewer and the HTTP API to a team: users with roles, projects, tokens, an audit log.

    Example:  steelyard serve --store postgresql://db/steelyard --url https://steelyard.example.com
    """
    from urllib.parse import urlsplit

    from steelyard.settings import Settings
    from steelyard.store import Store, shown_location
    from steelyard.web.accounts.oidc import OpenIdProvider
    from steelyard.web.accounts.proxies import Proxies
    from steelyard.web.accounts.sign_in import Accounts
    from steelyard.web.serving import Certificate, Server, address_of, listen
    from steelyard.web.viewer import LOOPBACK, Viewer

    settings = Settings.load(config)
    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("--tls-cert and --tls-key go together")
    for file in (tls_cert, tls_key):
        if file is not None and not file.is_file():
            raise ConfigError(f"there is no file {file}")
    if host not in LOOPBACK and url is None:
        raise ConfigError(f"listening on {host or 'every address'} needs --url: the address that browsers open")
    parts = urlsplit(url or "http://localhost")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ConfigError(f"--url is a scheme and a host, such as https://steelyard.example.com, not {url!r}")
    if tls_cert and parts.scheme != "https" and url:
        raise ConfigError("with --tls-cert, --url begins with https://")
    proxies = Proxies.of(trusted_proxy or [], proxy_user_header)
    location = settings.store_location(store)
    secret = settings.environment.get("STEELYARD_OIDC_SECRET", "")
    if (oidc_issuer is None) != (oidc_client_id is None) or (oidc_issuer and not secret):
        raise ConfigError("an identity provider takes --oidc-issuer, --oidc-client-id and STEELYARD_OIDC_SECRET")
    with Store.open(location) as opened:
        if not opened.users():
            raise ConfigError("there are no users yet; make the first: steelyard users add NAME --role admin")
    listening = listen(host, port)
    own = address_of(listening)
    if tls_cert:
        own = own.replace("http://", "https://", 1)
    address = (url or own).rstrip("/")
    provider = (
        OpenIdProvider.of(oidc_issuer, oidc_client_id, secret, address) if oidc_issuer and oidc_client_id else None
    )
    viewer = Viewer(
        settings,
        location,
        language=language(lang) or settings.run.language,
        hosts=frozenset({parts.hostname}) | LOOPBACK | (frozenset() if host in WILDCARDS else {host}),
        accounts=Accounts(address, proxies=proxies, provider=provider),
    )
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        print("warning: passwords travel without encryption; use --tls-cert, or a proxy with TLS", file=sys.stderr)

    def ready(_: str) -> None:
        print(f"{shown_location(location)} at {address}  (Ctrl-C to stop)", file=sys.stderr, flush=True)

    tls = Certificate(tls_cert, tls_key) if tls_cert and tls_key else None
    Server(viewer, listening, ready, tls).run()
