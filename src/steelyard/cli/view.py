"""`view`: the store in the browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from steelyard.cli.common import ConfigOption, PageLangOption, StoreOption, language
from steelyard.errors import ConfigError

WILDCARDS = ("0.0.0.0", "::", "")


def register(app: typer.Typer) -> None:
    app.command("view")(view)


def view(
    host: Annotated[str, typer.Option(help="Where to listen; anything but loopback needs a token.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Which port; default: 8321, or a free one if that is taken.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Required from every request; also read from STEELYARD_TOKEN.", show_default=False),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page in the browser.")] = False,
    lang: PageLangOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Look at runs in the browser, start and follow new ones; the HTTP API is there too.

    Example:  steelyard view
    """
    from steelyard.settings import Settings
    from steelyard.store import Store, shown_location
    from steelyard.web.serving import Server, listen
    from steelyard.web.viewer import LOOPBACK, Viewer

    settings = Settings.load(config)
    token = token or settings.token
    if host not in LOOPBACK and not token:
        raise ConfigError(f"listening on {host or 'every address'} needs a token: --token, or STEELYARD_TOKEN")
    location = settings.store_location(store)
    # Made or migrated now: what is wrong with it is said here, not on the first page.
    Store.open(location).close()
    viewer = Viewer(
        settings,
        location,
        language=language(lang) or settings.run.language,
        token=token,
        # Behind a wildcard there is no telling what it is called; the token has to do.
        hosts=frozenset() if host in WILDCARDS else LOOPBACK | {host},
    )

    def ready(address: str) -> None:
        print(f"{shown_location(location)} at {address}  (Ctrl-C to stop)", file=sys.stderr, flush=True)
        if not no_browser:
            import webbrowser
            from urllib.parse import urlencode

            webbrowser.open(f"{address}/?{urlencode({'token': token})}" if token else address)

    Server(viewer, listen(host, port), ready).run()
