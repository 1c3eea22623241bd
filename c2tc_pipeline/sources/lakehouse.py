"""Delta Lake and Iceberg tables: folders of Parquet files under a log, whose versions are the source's versions."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, refuse_duplicate_columns, sliced
from c2tc_pipeline.sources.values import pipeline_schema, with_schema

if TYPE_CHECKING:
    import pyarrow as pa

_METADATA = re.compile(r"v?([0-9]+)(-.*)?\.metadata\.json")


class LakehouseTable(Source):
    """Base of tables with a log of versions; the files of the newest version are read."""

    def __init__(self, location: Location) -> None:
        self.location = location

    @classmethod
    def from_address(cls, address: str) -> Source | None:
        return None

    @property
    def shown(self) -> str:
        return str(self.location)

    @property
    def name(self) -> str:
        return self.location.name

    def header(self) -> TableHeader:
        with self._opened() as table:
            names, rows = self._described(table)
            refuse_duplicate_columns(names, self.shown)
            return TableHeader(tuple(names), rows)

    def version(self) -> str:
        with self._opened() as table:
            return self._version(table)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with self._opened() as table:
            names, _ = self._described(table)
            refuse_duplicate_columns(names, self.shown)
            wanted = self.chosen(columns, names)
            schema, found = self._read(table, wanted, rows)
            schema = pipeline_schema(schema.remove_metadata(), widened=True)
            yield from sliced(with_schema(found, pa.schema([schema.field(name) for name in wanted])), rows)

    @abstractmethod
    def _open(self) -> Any: ...

    @abstractmethod
    def _described(self, table: Any) -> tuple[list[str], int | None]: ...

    @abstractmethod
    def _version(self, table: Any) -> str: ...

    @abstractmethod
    def _read(self, table: Any, columns: list[str], rows: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]: ...

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield self._open()
        except (InputError, ConnectionError):
            raise
        except pa.ArrowException as error:
            raise self._damaged(error) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("deltalake", "_internal", "pyiceberg") or isinstance(
                error, OSError | ValueError | LookupError | TypeError
            ):
                raise self._damaged(error) from None
            raise

    def _damaged(self, error: Exception) -> InputError:
        said = (str(error).splitlines() or [type(error).__name__])[0][:200]
        return InputError(
            f"The {self.format} table {self.shown} can't be read: {said}; check that all its files are there."
        )


class DeltaSource(LakehouseTable):
    """A Delta Lake table; its rows come in the order in which their files were added."""

    format = "Delta Lake"
    extra = "delta"

    @classmethod
    def of_folder(cls, location: Location, files: Sequence[str]) -> Source | None:
        return cls(location) if "_delta_log/" in files else None

    def _open(self) -> Any:
        deltalake = self.needed("deltalake")
        options = {}
        if self.location.scheme == "s3":
            options["AWS_REGION"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
            if endpoint := _endpoint():
                options |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower()}
        return deltalake.DeltaTable(self.location.path, storage_options=options)

    def _described(self, table: Any) -> tuple[list[str], int | None]:
        return [field.name for field in table.schema().fields], int(table.count())

    def _version(self, table: Any) -> str:
        return f"delta-{table.version()}-{table.metadata().id}"

    def _read(self, table: Any, columns: list[str], rows: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        import pyarrow as pa

        added = pa.table(table.get_add_actions())
        times = dict(zip(added["path"].to_pylist(), added["modification_time"].to_pylist(), strict=True))
        dataset = table.to_pyarrow_dataset()
        parts = sorted(dataset.get_fragments(), key=lambda part: (times.get(part.path) or 0, part.path))

        def batches() -> Iterator[pa.RecordBatch]:
            for part in parts:
                yield from part.to_batches(schema=dataset.schema, columns=columns, batch_size=rows)

        return dataset.schema, batches()


class IcebergSource(LakehouseTable):
    """An Iceberg table by the folder of its files; the newest metadata in it list the files of the table."""

    format = "Iceberg"
    extra = "iceberg"

    @classmethod
    def of_folder(cls, location: Location, files: Sequence[str]) -> Source | None:
        return cls(location) if "metadata/" in files and _newest_metadata(location) is not None else None

    def _open(self) -> Any:
        tables = self.needed("pyiceberg.table")
        newest = _newest_metadata(self.location)
        if newest is None:
            raise InputError(f"The folder {self.shown} holds no Iceberg metadata any more; check it.")
        # PyIceberg reads credentials from the environment, but not the server's address.
        endpoint = _endpoint()
        properties = {"s3.endpoint": endpoint} if endpoint else {}
        return tables.StaticTable.from_metadata(newest.path, properties)

    def _described(self, table: Any) -> tuple[list[str], int | None]:
        snapshot = table.current_snapshot()
        summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
        counts = [int(summary.get(f"total-{what}", 0)) for what in ("records", "position-deletes", "equality-deletes")]
        # The rows removed by equality deletes are known only after reading.
        rows = None if counts[2] or "total-records" not in summary else counts[0] - counts[1]
        return [field.name for field in table.schema().fields], rows

    def _version(self, table: Any) -> str:
        snapshot = table.current_snapshot()
        return f"iceberg-{'none' if snapshot is None else snapshot.snapshot_id}-{table.metadata.table_uuid.hex[:20]}"

    def _read(self, table: Any, columns: list[str], rows: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        reader = table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader()
        return reader.schema, iter(reader)


def _endpoint() -> str:
    """Return the address of the S3 server, empty for that of Amazon."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


def _newest_metadata(location: Location) -> Location | None:
    """Return the file of the newest metadata of an Iceberg table, by the number in its name."""
    folder = next((entry for entry, inner in location.entries() if inner and entry.name == "metadata"), None)
    found = [] if folder is None else [entry for entry, inner in folder.entries() if not inner]
    numbered = [(int(match[1]), entry.name, entry) for entry in found if (match := _METADATA.fullmatch(entry.name))]
    return max(numbered)[2] if numbered else None
