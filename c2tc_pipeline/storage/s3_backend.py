"""Artefacts in an S3 bucket, through s3fs.

Files are uploaded by calls that take the whole file: a handle opened for writing would publish what it got so far when
an error interrupts it. Messages never show credentials, nor text of the libraries below that might.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import StoredFile
from c2tc_pipeline.storage.object_backend import ObjectBackend


@dataclass(frozen=True, repr=False)
class S3Access:
    """Endpoint and credentials given by the program; what is absent comes from the environment.

    The environment's names are those of every AWS tool: ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``,
    ``AWS_SESSION_TOKEN``, ``AWS_PROFILE`` and ``AWS_ENDPOINT_URL_S3``.

    Parameters
    ----------
    endpoint_url, key, secret, token : str, optional
        Never shown.

    Examples
    --------
    >>> S3Access(key="tester", secret="do not tell")
    S3Access(...)
    """

    endpoint_url: str | None = None
    key: str | None = None
    secret: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return "S3Access(...)"


class S3Backend(ObjectBackend):
    """A bucket, or a part of one, on a server that honours conditional writes (``If-None-Match``).

    Parameters
    ----------
    folder : str
        Bucket and prefix, without ``s3://``.
    access : S3Access, optional
        Absent, the environment decides.

    Examples
    --------
    >>> S3Backend("bucket/prefix", S3Access(secret="do not tell"))
    S3Backend('s3://bucket/prefix')
    """

    def __init__(self, folder: str, access: S3Access | None = None) -> None:
        import s3fs

        super().__init__(f"s3://{folder}")
        access = access or S3Access()
        self._files = s3fs.S3FileSystem(
            endpoint_url=access.endpoint_url,
            key=access.key,
            secret=access.secret,
            token=access.token,
            # Other writers change the bucket, so a listing is old as soon as it is there.
            use_listings_cache=False,
            # s3fs would keep the credentials for the life of the process.
            skip_instance_cache=True,
        )

    def read_bytes(self, path: str) -> bytes:
        with self._own_words(path):
            return bytes(self._files.cat_file(self.address(path)))

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return a part of a file, fewer bytes where it ends before; ``FileNotFoundError`` if there is none."""
        with self._own_words(path):
            return bytes(self._files.cat_file(self.address(path), start=start, end=stop))

    def put_if_absent(self, path: str, content: bytes) -> bool:
        try:
            with self._own_words(path), self._needing_the_bucket():
                self._files.pipe_file(self.address(path), content, mode="create")
        except OSError:
            # Servers spell the refusal differently, and a put whose answer got lost is refused when it is repeated.
            # What is there now tells all of them apart.
            try:
                return self.read_bytes(path) == content
            except FileNotFoundError:
                pass
            raise
        return True

    def stored_files(self, folder: str) -> list[StoredFile]:
        start = len(self.root.removeprefix("s3://")) + 1
        with self._own_words(folder), self._needing_the_bucket():
            found = self._files.find(self.address(folder), detail=True)
        return [
            StoredFile(name[start:], info["size"], info["LastModified"].timestamp())
            for name, info in sorted(found.items())
            # Where nothing was listed, s3fs asks once more, and is told of a folder if a file has come since.
            if info["type"] == "file"
        ]

    def delete(self, path: str) -> None:
        with self._own_words(path), self._needing_the_bucket():
            self._files.rm_file(self.address(path))

    def write_file(self, path: str, source: Path) -> None:
        with self._own_words(path), self._needing_the_bucket():
            self._files.put_file(str(source), self.address(path))

    def read_file(self, path: str, target: Path) -> None:
        with self._own_words(path):
            self._files.get_file(self.address(path), str(target))

    def unfinished(self) -> list[StoredFile]:
        return [
            StoredFile(upload["Key"].removeprefix(self._prefix), 0, upload["Initiated"].timestamp())
            for upload in self._uploads("")
        ]

    def abandon(self, path: str) -> None:
        for upload in self._uploads(path):
            with self._own_words(path):
                self._files.call_s3(
                    "abort_multipart_upload", Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                )

    @property
    def _bucket(self) -> str:
        return self.root.removeprefix("s3://").partition("/")[0]

    @property
    def _prefix(self) -> str:
        prefix = self.root.removeprefix("s3://").partition("/")[2]
        return f"{prefix}/" if prefix else ""

    def _uploads(self, path: str) -> list[dict[str, Any]]:
        """Return the uploads in parts that were begun below the root, or of one file there."""
        found: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        while True:
            with self._own_words(path), self._needing_the_bucket():
                answer = self._files.call_s3(
                    "list_multipart_uploads", Bucket=self._bucket, Prefix=self._prefix + path, **after
                )
            found += [each for each in answer.get("Uploads") or [] if not path or each["Key"] == self._prefix + path]
            # One answer has a thousand of them at most.
            if not answer.get("IsTruncated"):
                return found
            after = {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    @contextmanager
    def _needing_the_bucket(self) -> Iterator[None]:
        """Where no object has to exist, the only thing that can be missing is the bucket."""
        try:
            yield
        except FileNotFoundError:
            raise InputError(
                f"There is no bucket {self._bucket!r}; create it or choose another storage root."
            ) from None

    @contextmanager
    def _own_words(self, path: str) -> Iterator[None]:
        """Turn what a user can mend into an ``InputError`` and what may pass into an ``OSError``."""
        try:
            yield
        except PermissionError:
            raise InputError(
                f"Access to {self.address(path)!r} was refused; check the credentials and their rights."
            ) from None
        except Exception as error:
            # botocore's own errors share no standard base class, and importing botocore only to name them is slow.
            if not type(error).__module__.startswith(("botocore", "aiobotocore")):
                raise
            if "Credentials" in type(error).__name__:
                raise InputError(
                    f"No credentials for {self.address(path)!r}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                    "or AWS_PROFILE."
                ) from None
            raise ConnectionError(f"{self.address(path)!r} could not be reached ({type(error).__name__}).") from None
