"""Where a table's bytes are and how to open them: a local path, ``s3://`` or ``memory://``.

No file format is known here. Messages never show user names, passwords or signatures of an address, nor
anything of the storage options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from c2tc_pipeline.common.errors import InputError, closest, one_line

REMOTE_SCHEMES = ("s3", "memory")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
# Where settings begin, by a question mark or by a name and its value that lack one.
_SETTINGS = re.compile(r"[?#]|[&;](?=[^/]*=)")
# What stands between "//" and "/" when all of a user is gone: a name, a number in brackets, a port.
_HOST = re.compile(r"([^\s:@\[\]\\]*|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?")


@dataclass(frozen=True)
class Location:
    """The address of one file.

    Parameters
    ----------
    scheme : str
        ``"file"`` or one of the remote schemes.
    path : str
        A local path, or the whole address.
    storage_options : mapping
        Handed to the remote file system; never shown.

    Examples
    --------
    >>> Location.parse("s3://bucket/tables/adult.parquet").name
    'adult.parquet'
    """

    scheme: str
    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, source: str | Path, storage_options: Mapping[str, Any] | None = None) -> Location:
        """Read an address, refusing what can't be opened or would give a secret away.

        Examples
        --------
        >>> Location.parse("file:///data/adult.csv").path
        '/data/adult.csv'
        """
        text = os.fspath(source)
        if not text:
            raise InputError("The source of the table is empty; give a path or an s3:// address.")
        scheme, found, rest = text.partition("://")
        if not found:
            return cls("file", text)
        if scheme not in ("file", *REMOTE_SCHEMES):
            raise InputError(
                f"The source {without_secrets(text)} can't be opened; give a local path or an s3:// address."
            )
        refuse_user(text)
        if scheme == "file":
            return cls("file", rest)
        return cls(scheme, text, dict(storage_options or {}))

    @property
    def name(self) -> str:
        """The last part of the path."""
        path = self.path if self.scheme == "file" else re.split("[?#]", self.path.partition("://")[2])[0]
        path = path if self.scheme == "file" or "/" in path else ""
        return path.replace(os.sep, "/").rstrip("/").rpartition("/")[2]

    def stem(self, endings: tuple[str, ...]) -> str:
        """The last part of the path without the longest of some endings.

        Examples
        --------
        >>> Location.parse("tables/people.2020.csv.gz").stem((".csv", ".csv.gz"))
        'people.2020'
        """
        for ending in sorted(endings, key=len, reverse=True):
            if self.name.lower().endswith(ending):
                return self.name[: -len(ending)]
        return self.name

    def __str__(self) -> str:
        return one_line(self.path) if self.scheme == "file" else without_secrets(self.path)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; what its user can mend becomes an ``InputError``, what may pass an ``OSError``.

        Examples
        --------
        >>> with Location.parse("no/such.csv").open() as file:
        ...     pass
        Traceback (most recent call last):
        ...
        c2tc_pipeline.common.errors.InputError: There is no file no/such.csv: the folder no does not exist; check the
        path.
        """
        if self.scheme == "file":
            with self._open_local() as local:
                yield local
            return
        with self._translated(), self._filesystem().open(self.path, "rb") as remote:
            yield cast("BinaryIO", remote)

    def is_folder(self) -> bool:
        """Whether this is a folder, or on S3 the beginning of several keys."""
        if self.scheme == "file":
            try:
                return Path(self.path).is_dir()
            except (OSError, ValueError):
                # A name that no file can have.
                return False
        with self._translated(), self._unremembered() as filesystem:
            return bool(filesystem.isdir(self.path.rstrip("/")))

    def entries(self) -> list[tuple[Location, bool]]:
        """Return what lies in a folder, sorted by name, each with whether it is a folder itself."""
        if self.scheme == "file":
            try:
                found = sorted(Path(self.path).iterdir(), key=lambda entry: entry.name)
            except PermissionError:
                raise InputError(f"The folder {self} may not be read; check its permissions.") from None
            return [(Location("file", str(entry)), entry.is_dir()) for entry in found]
        folder = self.path.rstrip("/")
        with self._translated(), self._unremembered() as filesystem:
            listed = filesystem.ls(folder, detail=True)
        below = []
        for entry in sorted(listed, key=lambda entry: str(entry["name"])):
            name = str(entry["name"]).rstrip("/").rpartition("/")[2]
            # The folder itself may be an object too, without a name of its own.
            if name and str(entry["name"]).strip("/") != folder.partition("://")[2].strip("/"):
                below.append((Location(self.scheme, f"{folder}/{name}", self.storage_options), _is_directory(entry)))
        return below

    def _filesystem(self) -> Any:
        import fsspec

        return fsspec.filesystem(self.scheme, **self.storage_options)

    @contextmanager
    def _unremembered(self) -> Iterator[Any]:
        """Yield the file system without listings from before and after: parts come, and files are replaced."""
        filesystem = self._filesystem()
        filesystem.invalidate_cache()
        try:
            yield filesystem
        finally:
            filesystem.invalidate_cache()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what a remote file system says into our own errors, which keep its secrets."""
        try:
            yield
        except InputError:
            raise
        except FileNotFoundError:
            raise InputError(f"There is no file {self}; check the address.") from None
        except IsADirectoryError:
            raise InputError(f"The source {self} is a folder; give the address of one file.") from None
        except PermissionError:
            raise InputError(f"Access to {self} was refused; check the credentials and their rights.") from None
        except Exception as error:
            module, kind = type(error).__module__, type(error).__name__
            if kind == "FileExpired":
                raise ConnectionError(f"The source {self} changed while it was being read; read it again.") from None
            # botocore's own errors share no standard base class, and importing botocore only to name them is
            # slow.
            if isinstance(error, ConnectionError) and error.errno is None:
                raise
            if not module.startswith(("botocore", "aiobotocore", "aiohttp")) and not isinstance(error, OSError):
                raise
            if "Credentials" in kind:
                raise InputError(
                    f"No credentials to read {self}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
                ) from None
            raise ConnectionError(f"{self} could not be read ({kind}).") from None

    def _open_local(self) -> BinaryIO:
        path = Path(self.path)
        try:
            if path.is_dir():
                raise InputError(
                    f"The source {self} is a folder; give the path of one file or of a folder of Parquet files."
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


def without_secrets(address: str) -> str:
    """Return an address without user name, password, query and fragment.

    Passwords are written into addresses as they are, with the characters that should have been encoded, so that no
    parser of addresses is trusted to find where one ends. Where that can't be told, nothing is shown.

    Parameters
    ----------
    address : str
        Any address.

    Returns
    -------
    str
        What may be shown, in one line.

    Examples
    --------
    >>> without_secrets("s3://key:secret@bucket/a.csv?X-Amz-Signature=123")
    's3://bucket/a.csv'
    >>> without_secrets("postgresql://ann:se/cr@t@db.example/sales"), without_secrets("postgresql://ann:se?cr@db/sales")
    ('postgresql://db.example/sales', 'postgresql://...')
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
    """Whether there is a user name, with or without a password, before the host of an address.

    Examples
    --------
    >>> carries_user("s3://key:a/b@bucket/c.csv"), carries_user("s3://bucket/c@d.csv")
    (True, False)
    """
    place = _SETTINGS.split(address.partition("://")[2])[0]
    host = place.partition("/")[0]
    # In a password that is not encoded there may be slashes.
    return "@" in host or (host != "" and ":" in place.rpartition("@")[0])


def refuse_user(address: str) -> None:
    """Refuse the address of a file that carries a user name or a password, without repeating them.

    Examples
    --------
    >>> refuse_user("s3://key:secret@bucket/a.csv")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: The source s3://bucket/a.csv carries a user name or password; ...
    """
    if carries_user(address):
        raise InputError(
            f"The source {without_secrets(address)} carries a user name or password; remove it and give "
            "credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        )


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"There is no file {path}: the folder {folder} does not exist; check the path."
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    return f"There is no file {path}; {closest(path.name, names)}." if names else f"There is no file {path}."


def _is_directory(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") == "directory"
