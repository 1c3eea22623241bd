"""Where a pipeline works: its catalogue, its storage and the folder of its instance.

Dagster loads definitions in processes of its own, which know only their environment. So the three are environment
variables, absolute, and the same ones whether a run happens in this process or is launched from the dashboard.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import split_root
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class Workplace:
    """Catalogue, storage and instance of a pipeline.

    Parameters
    ----------
    catalogue : Path
        The catalogue file.
    storage : str
        Where artefacts go: a path, ``s3://bucket/prefix`` or ``memory://name``.
    home : Path
        The folder of the instance, as in ``DAGSTER_HOME``.

    Examples
    --------
    >>> place = Workplace(Path("/p/catalog.yaml"), "s3://bucket/store", Path("/p/runs/dagster"))
    >>> place.environment()["C2TC_STORAGE"]
    's3://bucket/store'
    """

    catalogue: Path
    storage: str
    home: Path

    def environment(self) -> dict[str, str]:
        """Return the environment variables by which another process finds the same place."""
        scheme, folder = split_root(self.storage)
        return {
            "C2TC_CATALOGUE": str(self.catalogue.absolute()),
            "C2TC_STORAGE": str(Path(folder).absolute()) if scheme == "file" else self.storage,
            "DAGSTER_HOME": str(self.home.absolute()),
        }

    def tables(self) -> Catalogue:
        """Return the tables, or say that the catalogue is missing or wrong."""
        if not self.catalogue.exists():
            raise InputError(f"There is no catalogue {str(self.catalogue)!r} here; name yours with --catalogue.")
        return load_catalogue(self.catalogue.absolute())

    def store(self) -> ArtefactStore:
        """Return the store of its artefacts."""
        return ArtefactStore(self.environment()["C2TC_STORAGE"])

    def definitions(self, catalogue: Catalogue) -> dg.Definitions:
        """Return the pipeline over a catalogue, which is that of this place."""
        from c2tc_pipeline.definitions import build_defs

        return build_defs(catalogue, storage=self.environment()["C2TC_STORAGE"])


def chosen_cells(catalogue: Catalogue, table: str | None, ratio: float | None) -> dict[str, tuple[float, ...]]:
    """Return the ratios to make of each table, or say what the catalogue does not have.

    Parameters
    ----------
    catalogue : Catalogue
        The tables.
    table : str or None
        One of them; None stands for all.
    ratio : float or None
        One ratio that all of them list; None stands for all that each lists.

    Examples
    --------
    >>> from c2tc_pipeline.tables.spec import TableSpec
    >>> adult = TableSpec(name="adult", source="adult.csv", label="income", ratios=[0.1, 0.01])
    >>> chosen_cells(Catalogue(Path("catalog.yaml"), {"adult": adult}), None, 0.01)
    {'adult': (0.01,)}
    """
    names = list(catalogue) if table is None else [catalogue.table(table).name]
    if not names:
        raise InputError(f"There are no tables in the catalogue {catalogue.path}; describe one there.")
    for name in names:
        known = catalogue[name].ratios
        if ratio is not None and ratio not in known:
            listed = ", ".join(f"{each:g}" for each in known)
            raise InputError(
                f"Table {name!r} is not condensed to the ratio {ratio:g}; choose one of its ratios ({listed}), or add "
                f"it to the catalogue {catalogue.path}."
            )
    return {name: tuple(catalogue[name].ratios) if ratio is None else (ratio,) for name in names}
