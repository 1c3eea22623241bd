"""Catalogues of many tiny tables, and instances in which all of them were made."""

from __future__ import annotations

import copy
from pathlib import Path

import dagster as dg
import yaml

from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue
from c2tc_pipeline_tests.pipeline.toy_pipeline import record_all
from c2tc_pipeline_tests.tools.made_tables import mixed_table

RATIOS = (0.1, 0.05, 0.02)
ROWS = 200
# As little as a run can do: no search, one training of the quickest model.
QUICK = {
    "ratios": list(RATIOS),
    "settings": {"allocation": "ratio"},
    "evaluation": {"seeds": 1, "models": ["logistic"]},
}


def make_catalogue(folder: Path, tables: int) -> Catalogue:
    """Write so many tables and the catalogue that describes them into a folder.

    Parameters
    ----------
    folder : Path
        Made if need be.
    tables : int
        Each of 200 rows, with three ratios.
    """
    folder.mkdir(parents=True, exist_ok=True)
    described = {}
    for number in range(tables):
        name = f"table_{number:04d}"
        mixed_table(ROWS, seed=number).to_parquet(folder / f"{name}.parquet")
        described[name] = {
            "source": f"{name}.parquet",
            "label": "outcome",
            "ratios": list(RATIOS),
            **copy.deepcopy(QUICK),
        }
    path = folder / "catalog.yaml"
    path.write_text(yaml.safe_dump({"tables": described}, sort_keys=False))
    return load_catalogue(path)


def record_everything(instance: dg.DagsterInstance, catalogue: Catalogue) -> int:
    """Record a materialisation of every partition, as if all had been made; return how many.

    The records are those of real runs: recipe, data version and, for sources, fingerprint. Only artefacts are missing,
    at which nobody looks who asks what is out of date.
    """
    record_all(instance, catalogue)
    return sum(len(instance.get_materialized_partitions(key)) or 1 for key in instance.get_asset_keys())
