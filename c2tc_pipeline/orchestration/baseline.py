"""The schema that a delivery is held against: that of the last table that went on."""

from __future__ import annotations

from c2tc_pipeline.orchestration.formats import FORMATS
from c2tc_pipeline.orchestration.io_managers import StoreIOManager, artefact_key
from c2tc_pipeline.tables import TableSpec
from c2tc_pipeline.tables.validated import stored_schema


def baseline_schema(io_manager: StoreIOManager, spec: TableSpec) -> str | None:
    """Return the schema, as JSON, that a table's deliveries must fit; None as long as there is none to fit.

    Parameters
    ----------
    io_manager : StoreIOManager
        Where artefacts are stored.
    spec : TableSpec
        The table's description.
    """
    key = artefact_key("validated_table", spec.name)
    if not io_manager.store.newest_version(key):
        return None
    with io_manager.store.fetch(key, kind=FORMATS["validated_table"].kind) as directory:
        return stored_schema(directory, spec)
