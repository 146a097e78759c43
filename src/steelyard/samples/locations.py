"""Where files of samples lie: on disk, in folders, behind globs, and in object stores (`s3://`, `gs://`, `oss://`).

Object stores are reached through fsspec. Credentials are its business: it takes them from the environment, from the
provider's own files or from fsspec's configuration, and an address that carries some is refused.
"""

from __future__ import annotations

import glob
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from steelyard.errors import ConfigError, InputError, MissingExtra, SteelyardError

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MAGIC: Final = re.compile(r"[*?\[]")
# A question mark by itself is a glob's.
_PARAMETER: Final = re.compile(r"[\w.-]+=")
_IN_MESSAGES: Final = re.compile(r"\?[^\s'\")>]+|(?<=://)[^\s/@]+@")
_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
# What tells one version of a stored file from the next, by the names that file systems have for it.
_VERSIONS: Final = ("etag", "md5hash", "crc32c", "mtime", "lastmodified", "last_modified", "updated", "created")
_LONGEST: Final = 200
_SHORTEST_SECRET: Final = 6


class DataFile(NamedTuple):
    """One file of samples. `version` changes when its content does; `columns` are what its folders say (`lang=zh/`)."""

    name: str
    size: int = 0
    version: str = ""
    columns: Mapping[str, str | None] = {}


def is_url(name: str) -> bool:
    return bool(_URL.match(name))


def is_dataset(name: str) -> bool:
    """Whether a name stands for more than one local file: a URL, a folder, or a glob that no file is called by."""
    if is_url(name):
        return True
    path = Path(name)
    return name != "-" and (path.is_dir() or (bool(_MAGIC.search(name)) and not path.exists()))


def files_at(name: str, wanted: Callable[[str], bool]) -> list[DataFile]:
    """The files that a name stands for, in the order of their names.

    In folders and globs only `wanted` files count, and none whose name, or whose folder's, begins with `.` or `_`:
    Spark and others keep their own things there.
    """
    if not is_dataset(name):
        return [DataFile(name)]
    root, found = _remote(name) if is_url(name) else _local(name)
    if root is None:
        return found
    chosen = []
    for file in sorted(found):
        inner = PurePosixPath(file.name.removeprefix(root).lstrip("/"))
        if wanted(file.name) and not any(part.startswith((".", "_")) for part in inner.parts):
            chosen.append(file._replace(columns=_partition(inner)))
    if not chosen:
        raise InputError("there is no file of samples in it", file=name)
    return chosen


def _holds_secret(rest: str) -> bool:
    """Whether it has `user:password@` or `?name=value`."""
    user, is_named, _ = rest.partition("@")
    _, is_asked, query = rest.partition("?")
    return bool((is_named and ":" in user) or (is_asked and _PARAMETER.match(query)))


def filesystem(url: str, purpose: str) -> tuple[Any, str]:
    """The file system that a URL belongs to, and the path in it."""
    scheme, _, rest = url.partition("://")
    if _holds_secret(rest):
        raise ConfigError(
            f"an address ({scheme}://…) is kept with the run and must hold no credentials or parameters; "
            "set them in the environment or in fsspec's configuration"
        )
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import known_implementations
    except ImportError:
        raise MissingExtra("fsspec", "lake", f"{purpose} {scheme}://") from None
    try:
        found, path = url_to_fs(url)
    except ImportError as error:
        package = known_implementations.get(scheme, {}).get("class", "fsspec").partition(".")[0]
        if package == "fsspec":  # its own adapter of a package that only it can name
            raise ConfigError(f"{purpose} {scheme}:// is not possible: {error}") from None
        raise MissingExtra(package, None, f"{purpose} {scheme}://") from None
    except Exception as error:
        if scheme not in known_implementations:
            raise ConfigError(f"{scheme}:// is not known; fsspec knows s3, gs, oss, abfs and others") from None
        raise InputError(f"cannot be reached: {error_text(error)}", file=url) from None
    return found, path


@contextmanager
def reaching(name: str, store: Any = None) -> Iterator[None]:
    """What a file system raises, as an error that names the file. It ends a run, which can be resumed: if the rest of
    a file were left out, all later rows would change their places."""
    try:
        yield
    except SteelyardError:
        raise
    except FileNotFoundError:
        raise InputError("there is no such file", file=name) from None
    except Exception as error:
        raise InputError(f"cannot be reached: {error_text(error, store)}", file=name) from None


def error_text(error: Exception, store: Any = None) -> str:
    """What went wrong in one line, without signatures in addresses and without the file system's own settings."""
    text = next(iter(str(error).splitlines()), "").strip()
    for value in _texts(getattr(store, "storage_options", None)):
        text = text.replace(value, "***")
    text = _IN_MESSAGES.sub("…", text)[:_LONGEST]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, str) and len(value) >= _SHORTEST_SECRET:
        yield value


class RemoteFile(io.RawIOBase):
    """A file behind a URL. `whole_reads`: each read is one request, as the reader of Parquet wants it."""

    def __init__(self, name: str, *, whole_reads: bool = False) -> None:
        self._name = name
        self._store, path = filesystem(name, "reading")
        with reaching(name, self._store):
            self._file = self._store.open(path, "rb", **({"cache_type": "none"} if whole_reads else {}))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with reaching(self._name, self._store):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        with reaching(self._name, self._store):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _local(name: str) -> tuple[str, list[DataFile]]:
    tops = [Path(name)] if Path(name).is_dir() else [Path(found) for found in glob.glob(name, recursive=True)]
    paths = {path for top in tops for path in ([top] if top.is_file() else top.rglob("*")) if path.is_file()}
    stats = ((path, path.stat()) for path in paths)
    return _above(name), [DataFile(path.as_posix(), stat.st_size, str(stat.st_mtime_ns)) for path, stat in stats]


def _remote(url: str) -> tuple[str | None, list[DataFile]]:
    """The files, and the folder that they were looked for in; no folder where the URL is that of one file."""
    store, path = filesystem(url, "reading")
    with reaching(url, store):
        # What another program wrote a moment ago counts.
        store.invalidate_cache()
        if _MAGIC.search(path):
            tops = list(store.glob(path, detail=True).values())
        else:
            tops = [store.info(path)]
            if tops[0]["type"] != "directory":
                return None, [_described(store, tops[0])]
        found: dict[str, Any] = {}
        for top in tops:
            below = store.find(top["name"], detail=True).values() if top["type"] == "directory" else [top]
            found |= {info["name"]: info for info in below if not info["name"].endswith("/")}
        # As the names of its files begin, however the user wrote it.
        return store.unstrip_protocol(_above(path)), [_described(store, info) for info in found.values()]


def _described(store: Any, info: Mapping[str, Any]) -> DataFile:
    known = {key.lower(): value for key, value in info.items()}
    version = next((str(known[key]) for key in _VERSIONS if known.get(key)), "")
    return DataFile(store.unstrip_protocol(info["name"]), int(info.get("size") or 0), version)


def _above(name: str) -> str:
    """The folder that a name stands for; of a glob, the folders before its first sign."""
    path = PurePosixPath(Path(name).as_posix())
    plain = []
    for part in path.parts:
        if _MAGIC.search(part):
            break
        plain.append(part)
    return PurePosixPath(*plain).as_posix() if plain else ""


def _partition(inner: PurePosixPath) -> dict[str, str | None]:
    """The columns that the folders of a Hive-partitioned dataset hold: `lang=zh/model=a/part-0.parquet`."""
    pairs = (part.partition("=") for part in inner.parts[:-1])
    return {unquote(key): None if value == _HIVE_NULL else unquote(value) for key, sign, value in pairs if sign and key}
