"""Open files at a local path or an address and return their version; messages never show secrets.

Addresses begin with ``s3://``, ``https://``, ``http://`` or ``memory://``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from c2tc_pipeline.common.errors import InputError, closest, one_line
from c2tc_pipeline.storage.backend import s3_errors
from c2tc_pipeline.storage.manifest import hash_json

WEB_SCHEMES = ("https", "http")
REMOTE_SCHEMES = ("s3", *WEB_SCHEMES, "memory")
# Enough to recognise a file by its content: the names of the first files of an archive are among it.
START_BYTES = 4096
# How long a web server may be silent.
WEB_SILENCE_SECONDS = 60.0

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
# Where settings begin, by a question mark or by a name and its value that lack one.
_SETTINGS = re.compile(r"[?#]|[&;](?=[^/]*=)")
# The host between "//" and "/" without its user: a name or a number in brackets, and a port.
_HOST = re.compile(r"([^\s:@\[\]\\]*|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?")


@dataclass(frozen=True)
class Location:
    """The address of one file: a local path (scheme ``"file"``), or the whole address of a remote one.

    ``shown`` replaces the address in messages.
    """

    scheme: str
    path: str
    shown: str = ""

    @classmethod
    def parse(cls, source: str | Path) -> Location:
        """Parse an address; refuse what can't be opened and what carries a password."""
        text = os.fspath(source)
        if not text:
            raise InputError("The source of the table is empty; give a path or an address.")
        scheme, found, rest = text.partition("://")
        if not found:
            return cls("file", text)
        if scheme not in ("file", *REMOTE_SCHEMES):
            raise InputError(
                f"The source {without_secrets(text)} can't be opened; give a local path, or an s3:// or https:// "
                "address."
            )
        refuse_user(text)
        if scheme == "file":
            return cls("file", rest)
        return cls(scheme, text)

    @property
    def name(self) -> str:
        """The last part of the path."""
        if self.scheme == "file":
            return self.path.replace(os.sep, "/").rstrip("/").rpartition("/")[2]
        path = re.split("[?#]", self.path.partition("://")[2])[0]
        return path.rstrip("/").rpartition("/")[2] if "/" in path else ""

    def stem(self, endings: tuple[str, ...]) -> str:
        """The last part of the path without the longest of some endings."""
        fitting = [ending for ending in endings if self.name.lower().endswith(ending)]
        return self.name[: -max(map(len, fitting))] if fitting else self.name

    def __str__(self) -> str:
        if self.shown:
            return self.shown
        return one_line(self.path) if self.scheme == "file" else without_secrets(self.path)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; ``InputError`` for mistakes of the user, ``OSError`` for transient errors."""
        if self.scheme == "file":
            with self._open_local() as local:
                yield local
        else:
            with self._translated(), self._filesystem().open(self.path, "rb") as remote:
                if remote.seekable():
                    yield cast("BinaryIO", remote)
                    return
                # A web server that sends whole files only.
                with tempfile.TemporaryFile(prefix="c2tc-") as copy:
                    shutil.copyfileobj(remote, copy, 1 << 20)
                    copy.seek(0)
                    yield cast("BinaryIO", copy)

    def start(self) -> bytes:
        """Return the first bytes of the file."""
        if self.scheme == "file":
            with self.open() as file:
                return file.read(START_BYTES)
        with self._translated(), self._filesystem().open(self.path, "rb") as remote:
            return bytes(remote.read(START_BYTES))

    def version(self) -> str:
        """Return a version of the file: its size, then locally its time and inode, on S3 its ETag.

        On the web: its size, ETag and modification time as the server names them, or the hash of the content.
        """
        if self.scheme in WEB_SCHEMES:
            with self._translated():
                info = self._filesystem().info(self.path)
            marks = [info.get(name) for name in ("size", "ETag", "Last-Modified")]
            mark = hash_json(marks) if any(marks[1:]) else self.digest()
            return f"{info['size']}-{mark[:32]}" if info.get("size") is not None else f"web-{mark[:32]}"
        with self.open() as file:
            if self.scheme == "file":
                state = os.fstat(file.fileno())
                return f"{state.st_size}-{state.st_mtime_ns}-{state.st_ino}"
            if self.scheme == "s3":
                details = file.details  # type: ignore[attr-defined]  # of s3fs: the server's answer to opening
                # Servers choose what an ETag looks like; its hash is short and of plain letters.
                return f"{details['size']}-{hashlib.sha256(details['ETag'].encode()).hexdigest()[:32]}"
            return f"{file.seek(0, os.SEEK_END)}-{self.digest()[:32]}"

    def digest(self) -> str:
        """Return the sha256 of the file's bytes, read in pieces."""
        with self.open() as file:
            return hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest()

    def is_folder(self) -> bool:
        """Return whether this is a folder, or on S3 the beginning of several keys."""
        if self.scheme == "file":
            try:
                return Path(self.path).is_dir()
            except (OSError, ValueError):
                # A name that no file can have.
                return False
        if self.scheme in WEB_SCHEMES:
            return False
        with self._translated(), self._without_listings() as filesystem:
            return bool(filesystem.isdir(self.path.rstrip("/")))

    def entries(self) -> list[tuple[Location, bool]]:
        """List a folder, sorted by name, each entry with whether it is a folder itself."""
        if self.scheme == "file":
            try:
                found = sorted(Path(self.path).iterdir(), key=lambda entry: entry.name)
            except PermissionError:
                raise InputError(f"The folder {self} may not be read; check its permissions.") from None
            return [(Location("file", str(entry)), entry.is_dir()) for entry in found]
        folder = self.path.rstrip("/")
        with self._translated(), self._without_listings() as filesystem:
            listed = {str(entry["name"]).strip("/"): entry.get("type") for entry in filesystem.ls(folder, detail=True)}
        # The folder itself may be an object too.
        listed.pop(folder.partition("://")[2].strip("/"), None)
        return [
            (Location(self.scheme, f"{folder}/{name.rpartition('/')[2]}"), kind == "directory")
            for name, kind in sorted(listed.items())
        ]

    def _filesystem(self) -> Any:
        import fsspec

        if self.scheme not in WEB_SCHEMES:
            return fsspec.filesystem(self.scheme)  # s3fs has timeouts of its own
        from aiohttp import ClientTimeout

        # The default limits a whole request, however large the file, and no silence.
        timeout = ClientTimeout(total=None, sock_connect=WEB_SILENCE_SECONDS, sock_read=WEB_SILENCE_SECONDS)
        return fsspec.filesystem(self.scheme, client_kwargs={"timeout": timeout})

    @contextmanager
    def _without_listings(self) -> Iterator[Any]:
        """Yield the file system with cached listings dropped before and after: parts are added, files replaced."""
        filesystem = self._filesystem()
        filesystem.invalidate_cache()
        try:
            yield filesystem
        finally:
            filesystem.invalidate_cache()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of a remote file system into our own, whose messages hold no secrets."""
        try:
            with web_errors(str(self)) if self.scheme in WEB_SCHEMES else s3_errors(str(self)):
                yield
        except FileNotFoundError:
            raise InputError(f"There is no file {self}; check the address.") from None
        except IsADirectoryError:
            raise InputError(f"The source {self} is a folder; give the address of one file.") from None
        except OSError as error:
            if isinstance(error, ConnectionError) and error.errno is None:
                raise
            if type(error).__name__ == "FileExpired":
                raise ConnectionError(f"The source {self} changed while it was being read; read it again.") from None
            raise ConnectionError(f"{self} could not be read ({type(error).__name__}).") from None

    def _open_local(self) -> BinaryIO:
        path = Path(self.path)
        try:
            if path.is_dir():
                raise InputError(
                    f"The source {self} is a folder; give the path of one file or of a folder of its parts."
                )
            return path.open("rb")
        except FileNotFoundError:
            raise InputError(_no_such_file(path)) from None
        except PermissionError:
            raise InputError(f"The file {self} may not be read; check its permissions.") from None
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"The path {self.path[:200]!r} can't be opened; check it.") from None


@contextmanager
def web_errors(shown: str) -> Iterator[None]:
    """Turn refusals of a web server into ``InputError``, and other errors on the way to it into ``ConnectionError``."""
    try:
        yield
    except Exception as error:
        # fsspec says that there is no file whatever went wrong, and names aiohttp's error as the cause.
        cause = error.__cause__ if isinstance(error, FileNotFoundError) else error
        if cause is None or not type(cause).__module__.startswith("aiohttp"):
            raise
        status = getattr(cause, "status", None)
        if isinstance(status, int) and 400 <= status < 500 and status not in (404, 408, 410, 425, 429):
            raise InputError(f"The server refused {shown} (status {status}); check the address.") from None
        if status in (404, 410):
            raise
        check = (
            "the certificate of the server" if "Certificate" in type(cause).__name__ else "the address and the network"
        )
        raise ConnectionError(f"{shown} could not be reached ({type(cause).__name__}); check {check}.") from None


def is_file_address(address: str) -> bool:
    """Return whether an address is a path or has the scheme of a file."""
    scheme, found, _ = address.partition("://")
    return not found or scheme in ("file", *REMOTE_SCHEMES)


def without_secrets(address: str) -> str:
    """Return an address without user name, password, query and fragment, in one line.

    Passwords may hold characters that should have been encoded, so no URL parser is used; in doubt nothing is shown.
    """
    scheme, found, rest = address.partition("://")
    if not found:
        return one_line(_SETTINGS.split(address)[0].rpartition("@")[2])
    if not _SCHEME.fullmatch(scheme):
        return "..."
    place = _SETTINGS.split(rest)[0]
    if carries_user(address):
        place = place.rpartition("@")[2]
    host = place.partition("/")[0]
    return one_line(f"{scheme}://{place}") if _HOST.fullmatch(host) else f"{scheme}://..."


def carries_user(address: str) -> bool:
    """Return whether there is a user name, with or without a password, before the host of an address."""
    place = _SETTINGS.split(address.partition("://")[2])[0]
    host = place.partition("/")[0]
    # In a password that is not encoded there may be slashes.
    return "@" in host or (host != "" and ":" in place.rpartition("@")[0])


def refuse_user(address: str) -> None:
    """Refuse the address of a file that carries a user name or a password, without repeating them."""
    if carries_user(address):
        raise InputError(
            f"The source {without_secrets(address)} carries a user name or password; remove it and give "
            "credentials of S3 in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        )


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"There is no file {path}: the folder {folder} does not exist; check the path."
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    return f"There is no file {path}; {closest(path.name, names)}." if names else f"There is no file {path}."
