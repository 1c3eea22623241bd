"""The schema that a delivery is held against: that of the first table that was accepted under the present baseline.

Not that of the last one: a delivery that happens to lack a class or a missing value would forbid them from then on.
"""

from __future__ import annotations

from c2tc_pipeline.pipeline.formats import FORMATS, SCHEMA_NAME
from c2tc_pipeline.pipeline.io_managers import StoreIOManager, artefact_key
from c2tc_pipeline.storage.manifest import refusing_damage
from c2tc_pipeline.tables.schema import baseline_of
from c2tc_pipeline.tables.spec import TableSpec


def baseline_schema(io_manager: StoreIOManager, spec: TableSpec) -> str | None:
    """Return the schema, as JSON, that a table's deliveries must fit; None as long as there is none to fit.

    Parameters
    ----------
    io_manager : StoreIOManager
        Where artefacts are stored.
    spec : TableSpec
        The table's description.
    """
    key, mark = artefact_key("validated_table", spec.name), baseline_of(spec)
    for version in io_manager.store.versions(key):
        if io_manager.store.published(key, version).settings.get("baseline") == mark:
            kind = FORMATS["validated_table"].kind
            with io_manager.store.fetch(key, version=version, kind=kind) as directory, refusing_damage(key):
                return (directory / SCHEMA_NAME).read_text(encoding="utf-8")
    return None
