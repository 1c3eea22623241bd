"""Where a table's bytes are and how to open them: a local path, ``s3://`` or ``memory://``.

No file format is known here. Messages never show user names, passwords or signatures of an address, nor
anything of the storage options.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.tables.names import closest

REMOTE_SCHEMES = ("s3", "memory")


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
        if scheme == "file":
            return cls("file", rest)
        if scheme not in REMOTE_SCHEMES:
            raise InputError(
                f"The source {without_secrets(text)} can't be opened; give a local path or an s3:// address."
            )
        if "@" in urlsplit(text).netloc:
            raise InputError(
                f"The source {without_secrets(text)} carries a user name or password; remove it and give "
                "credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            )
        return cls(scheme, text, dict(storage_options or {}))

    @property
    def name(self) -> str:
        """The last part of the path."""
        path = self.path if self.scheme == "file" else urlsplit(self.path).path
        return path.replace(os.sep, "/").rstrip("/").rpartition("/")[2]

    def __str__(self) -> str:
        return self.path if self.scheme == "file" else without_secrets(self.path)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open for reading; what its user can mend becomes an ``InputError``, what may pass an ``OSError``.

        Examples
        --------
        >>> with Location.parse("no/such.csv").open() as file:
        ...     pass
        Traceback (most recent call last):
        ...
        c2tc_pipeline.errors.InputError: There is no file no/such.csv: the folder no does not exist; check the
        path.
        """
        if self.scheme == "file":
            with self._open_local() as local:
                yield local
            return
        import fsspec

        try:
            filesystem = fsspec.filesystem(self.scheme, **self.storage_options)
            with filesystem.open(self.path, "rb") as remote:
                yield cast("BinaryIO", remote)
        except FileNotFoundError:
            raise InputError(f"There is no file {self}; check the address.") from None
        except IsADirectoryError:
            raise InputError(f"The source {self} is a folder; give the address of one file.") from None
        except PermissionError:
            raise InputError(f"Access to {self} was refused; check the credentials and their rights.") from None
        except Exception as error:
            # botocore's own errors share no standard base class, and importing botocore only to name them is
            # slow.
            if not type(error).__module__.startswith(("botocore", "aiobotocore")):
                raise
            if "Credentials" in type(error).__name__:
                raise InputError(
                    f"No credentials to read {self}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
                ) from None
            raise ConnectionError(f"{self} could not be read ({type(error).__name__}).") from None

    def _open_local(self) -> BinaryIO:
        path = Path(self.path)
        try:
            if path.is_dir():
                raise InputError(f"The source {self} is a folder; give the path of one file.")
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

    Parameters
    ----------
    address : str
        Any address.

    Returns
    -------
    str
        What may be shown.

    Examples
    --------
    >>> without_secrets("s3://key:secret@bucket/a.csv?X-Amz-Signature=123")
    's3://bucket/a.csv'
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return address.partition("://")[0] + "://..."
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"There is no file {path}: the folder {folder} does not exist; check the path."
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    return f"There is no file {path}; {closest(path.name, names)}." if names else f"There is no file {path}."
