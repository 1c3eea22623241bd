"""Files in a storage root through fsspec: a local directory, an S3 bucket or this process's memory.

Every file appears whole or not at all: files of remote places pass through a temporary directory, since an s3fs handle
publishes what it has when an exception interrupts it. Messages never show credentials or text of client libraries.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.storage.manifest import files_below, relative_name, sync_directory, sync_folder

_FORMS = "a path, file:///path, s3://bucket/prefix or memory://name"
# No "@", "?" or "#", which come with passwords and signatures, and no part that starts with a dot.
_FOLDER = re.compile(r"[A-Za-z0-9_=|-][A-Za-z0-9_.=|-]*(/[A-Za-z0-9_=|-][A-Za-z0-9_.=|-]*)*")
_NOT_WRITABLE = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EROFS)
# fsspec's memory is shared by the whole process and not safe for threads.
_MEMORY_LOCK = threading.Lock()


@dataclass(frozen=True)
class StoredFile:
    """A listed file: its path, or that of an empty local folder with a slash, its size and its time in seconds."""

    path: str
    size: int
    modified: float


def split_root(root: str | Path) -> tuple[str, str]:
    """Return the scheme and the rest of a storage root; a refused root is not repeated, as it may hold a password."""
    text = os.fspath(root)
    scheme, rest = text.split("://", 1) if "://" in text else ("file", text)
    if scheme not in ("file", "s3", "memory"):
        raise InputError(f"The storage root has an unknown form; give {_FORMS}.")
    if scheme == "file":
        if not rest or "\0" in rest:
            raise InputError(f"The storage root is not a path; give {_FORMS}.")
        return scheme, rest
    folder = rest.removesuffix("/")
    if not _FOLDER.fullmatch(folder):
        raise InputError(
            f"The {scheme}:// storage root may hold only names of letters, digits, _, -, =, | and dots between "
            "slashes; credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    return scheme, folder


class Backend:
    """Files under relative paths with slashes below a storage root; S3 servers have to honour ``If-None-Match``."""

    def __init__(self, root: str | Path) -> None:
        import fsspec

        scheme, folder = split_root(root)
        self.local = Path(os.path.abspath(folder)) if scheme == "file" else None
        self.root = f"{scheme}://{folder}" if self.local is None else str(self.local)
        self._on_s3 = scheme == "s3"
        self._bucket, _, self._prefix = f"{folder}/".partition("/")
        # Without the caches of s3fs: other writers change the bucket, and instances would keep the credentials.
        options = {"use_listings_cache": False, "skip_instance_cache": True} if self._on_s3 else {}
        self._files = fsspec.filesystem(scheme, **options)

    def address(self, path: str) -> str:
        """Return the full address of a path, as messages show it."""
        return f"{self.root.removesuffix('/')}/{path}"

    def exists(self) -> bool:
        """Return whether the root exists: the local directory, or elsewhere any file."""
        return bool(self.stored_files("")) if self.local is None else self.local.is_dir()

    def read_bytes(self, path: str, start: int | None = None, stop: int | None = None) -> bytes:
        """Return a file's content or a part of it; ``FileNotFoundError`` if there is none."""
        with self._calls(path, needs_file=True):
            return bytes(self._files.cat_file(self.address(path), start=start, end=stop))

    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Create a small file unless it exists, and return whether it is the caller's; exactly one caller wins.

        The content must be unique to the caller: if the answer of a server is lost, it shows whose file is there.
        """
        if self.local is not None:
            return _link_if_absent(self.local / path, content, self.local)
        try:
            with self._calls(path):
                self._files.pipe_file(self.address(path), content, mode="create")
        except OSError:
            # Servers refuse with different errors, and a repeated put whose first answer was lost is refused too.
            with suppress(FileNotFoundError):
                return self.read_bytes(path) == content
            raise
        return True

    def write_file(self, path: str, source: Path) -> None:
        """Upload a local file."""
        with self._calls(path):
            self._files.put_file(str(source), self.address(path))

    def stored_files(self, folder: str) -> list[StoredFile]:
        """Return all files, and empty local folders, below a folder, sorted; none if there is no such folder."""
        if self.local is not None:
            return list_directory(self.local / folder, self.local)
        start = len(self.root.partition("://")[2]) + 1
        with self._calls(folder):
            # If a file appears while s3fs lists an empty folder, it returns the folder.
            found = self._files.find(self.address(folder), detail=True).items()
            files = sorted((name, info) for name, info in found if info["type"] == "file")
            times = [info.get("LastModified") or self._files.modified(name) for name, info in files]
        stored = zip(files, times, strict=True)
        return [StoredFile(name.lstrip("/")[start:], info["size"], time.timestamp()) for (name, info), time in stored]

    def list_files(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, sorted."""
        return [file.path for file in self.stored_files(folder) if not file.path.endswith("/")]

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is ignored."""
        with suppress(FileNotFoundError), self._calls(path):
            self._files.rm_file(self.address(path))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and all files below it; a missing one is ignored."""
        with suppress(FileNotFoundError), self._calls(folder, needs_file=True):
            self._files.rm(self.address(folder), recursive=True)

    @contextmanager
    def filling(self, folder: str) -> Iterator[Path]:
        """Yield an empty local directory and keep its files as a new folder; an exception in the block keeps none."""
        if self.local is None:
            with ScratchDirectory() as name:
                yield Path(name)
                for path in files_below(Path(name)):
                    self.write_file(f"{folder}/{relative_name(path, Path(name))}", path)
            return
        target = self.local / folder
        _make_folder(target)
        try:
            yield target
            sync_directory(target)
            _sync_up(target.parent, self.local)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise

    @contextmanager
    def reading(self, folder: str, names: Iterable[str]) -> Iterator[Path]:
        """Yield a local directory, for reading only, with the named files of a folder, as far as they exist."""
        if self.local is not None:
            yield self.local / folder
            return
        with ScratchDirectory() as directory:
            for path, target in ((f"{folder}/{name}", Path(directory, name)) for name in names):
                target.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError), self._calls(path, needs_file=True):
                    self._files.get_file(self.address(path), str(target))
            yield Path(directory)

    def unfinished(self) -> list[tuple[StoredFile, Callable[[], object]]]:
        """Return multipart uploads to S3 that were not completed, a thousand at most, and a call that aborts each."""
        if not self._on_s3:
            return []
        where, abort = {"Bucket": self._bucket, "Prefix": self._prefix}, self._files.abort_mpu
        with self._calls(""):
            uploads = self._files.call_s3("list_multipart_uploads", **where).get("Uploads") or []
        names = [each["Key"].removeprefix(self._prefix) for each in uploads]
        return [
            (
                StoredFile(name, 0, each["Initiated"].timestamp()),
                partial(abort, self._bucket, each["Key"], each["UploadId"]),
            )
            for name, each in zip(names, uploads, strict=True)
        ]

    @contextmanager
    def _calls(self, path: str, *, needs_file: bool = False) -> Iterator[None]:
        """Serialise calls to memory; turn S3 errors into ``InputError`` if the user can act, else ``OSError``."""
        if not self._on_s3:
            with contextlib.nullcontext() if self.local else _MEMORY_LOCK:
                yield
            return
        try:
            with s3_errors(repr(self.address(path))):
                yield
        except FileNotFoundError:
            if needs_file:
                raise
            raise InputError(f"There is no bucket {self._bucket!r}; create it or choose another root.") from None


@contextmanager
def s3_errors(shown: str) -> Iterator[None]:
    """Turn refusals and errors of botocore into ``InputError`` if the user can act, else ``ConnectionError``."""
    try:
        yield
    except PermissionError:
        raise InputError(f"Access to {shown} was refused; check the credentials and their rights.") from None
    except Exception as error:
        # botocore's errors have no common base class, and importing botocore only to name them is slow.
        if not type(error).__module__.startswith(("botocore", "aiobotocore", "aiohttp")):
            raise
        if "Credentials" in type(error).__name__:
            variables = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            raise InputError(f"No credentials for {shown}; set {variables}.") from None
        raise ConnectionError(f"{shown} could not be reached ({type(error).__name__}).") from None


def list_directory(directory: Path, root: Path | None = None) -> list[StoredFile]:
    """List a local directory at any depth; fsspec omits a whole folder if a file in it vanishes meanwhile."""
    found = []
    for parent, folders, files in os.walk(directory):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for path in [Path(parent, name) for name in (*files, *links)] or ([] if folders else [Path(parent)]):
            # What other processes remove meanwhile is not listed.
            with suppress(FileNotFoundError):
                state, name = path.lstat(), relative_name(path, root or directory)
                is_folder = stat.S_ISDIR(state.st_mode)
                found.append(
                    StoredFile(f"{name}/" if is_folder else name, 0 if is_folder else state.st_size, state.st_mtime)
                )
    return sorted(found, key=lambda file: file.path)


def _link_if_absent(target: Path, content: bytes, root: Path) -> bool:
    _make_folder(target.parent)
    private = target.parent / f".{uuid.uuid4().hex}.partial"
    try:
        with private.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        # Unlike a rename, a link never replaces what is there.
        os.link(private, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        raise InputError(f"Storage folder {str(target.parent)!r} is read-only or has no hard links.") from None
    finally:
        private.unlink(missing_ok=True)
    _sync_up(target.parent, root)
    return True


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTDIR, *_NOT_WRITABLE):
            raise
        raise InputError(f"Storage folder {str(folder)!r} can't be made ({error.strerror}).") from None


def _sync_up(folder: Path, root: Path) -> None:
    """Flush the names in a folder and its parents up to the root."""
    for each in (folder, *folder.parents):
        sync_folder(each)
        if each == root:
            return
