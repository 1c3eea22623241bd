"""Fitted encoders on disk, and without strings that rows no longer have.

An encoder is one JSON file with values and one safetensors file with arrays, no pickle. A file may have been written by
anyone: what does not fit together is refused.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import Registry
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.part import Part, PartState, as_role, checked_texts
from c2tc_pipeline.storage.manifest import DamagedArtefactError, hash_file, hash_json
from c2tc_pipeline.tables.kinds import factorise
from c2tc_pipeline.tables.readings import Readings
from c2tc_pipeline.tables.roles import ColumnRole, Role

FORMAT = "c2tc-encoder/2"
VALUES_NAME = "encoder.json"
ARRAYS_NAME = "encoder.safetensors"
# Parameters of earlier releases that fitted parts do not depend on.
_FORMER_PARAMETERS = ("scalar_target",)

ENCODERS = Registry("encoder", {"HybridEncoder": "c2tc_pipeline.encoding.hybrid:HybridEncoder"})
"""Encoders that can be stored, by class name; importing the bench's adds them. Defining a part registers it."""


def save_encoder(encoder: TableEncoder, directory: str | Path) -> None:
    """Write a fitted encoder into a directory."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    parts = []
    for index, part in enumerate(encoder.parts_):
        state = part.state()
        parts.append({"kind": part.kind, "values": state.values})
        arrays |= {f"{index}/{name}": np.ascontiguousarray(array) for name, array in state.arrays.items()}
    (directory / ARRAYS_NAME).write_bytes(save(arrays))
    values = {
        "format": FORMAT,
        "encoder": type(encoder).__name__,
        "parameters": _plain_parameters(encoder),
        "columns": encoder.columns_,
        "named": hasattr(encoder, "feature_names_in_"),
        "classes": None if encoder.classes_ is None else encoder.classes_.tolist(),
        "readings": encoder.readings_.to_json(),
        "roles": [vars(column) for column in encoder.roles_.values()],
        "parts": parts,
        "record": encoder.record(),
        "arrays_sha256": hash_file(directory / ARRAYS_NAME),
    }
    values["sha256"] = hash_json(values)
    text = json.dumps(values, indent=1, ensure_ascii=False, sort_keys=True)
    (directory / VALUES_NAME).write_text(text + "\n", encoding="utf-8", errors="surrogatepass")


def load_encoder(directory: str | Path) -> TableEncoder:
    """Read an encoder written by :func:`save_encoder`; it transforms as the saved one did."""
    directory = Path(directory)
    path = directory / VALUES_NAME
    damaged = f"Encoder in {str(directory)!r} is damaged; make it again."
    try:
        values = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        if values["format"] != FORMAT:
            raise InputError(f"Encoder {str(path)!r} has format {values['format']!r}; this version reads {FORMAT!r}.")
        found = values.pop("sha256"), values["arrays_sha256"]
        if found != (hash_json(values), hash_file(directory / ARRAYS_NAME)):
            raise DamagedArtefactError(damaged)
        return _rebuilt(values, load_file(directory / ARRAYS_NAME))
    except OSError as error:
        raise InputError(
            f"There is no encoder in {str(directory)!r} ({error.strerror}); choose the directory it was saved to."
        ) from None
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError, MemoryError):
        raise DamagedArtefactError(damaged) from None
    except SafetensorError:
        raise DamagedArtefactError(damaged) from None


def _rebuilt(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableEncoder:
    given = {name: value for name, value in values["parameters"].items() if name not in _FORMER_PARAMETERS}
    kind = ENCODERS.load(values["encoder"])
    encoder: TableEncoder = kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})
    encoder.columns_ = checked_texts(values["columns"])
    encoder.n_features_in_ = len(encoder.columns_)
    if values["named"]:
        encoder.feature_names_in_ = np.array(encoder.columns_, dtype=object)
    encoder.classes_ = None if values["classes"] is None else np.array(values["classes"])
    encoder.roles_ = {v["name"]: ColumnRole(**{**v, "role": Role(v["role"])}) for v in values["roles"]}
    encoder.readings_ = Readings.from_json(values.get("readings", Readings().to_json()))
    encoder.parts_ = []
    for index, part in enumerate(values["parts"]):
        own = {name.split("/", 1)[1]: a for name, a in arrays.items() if name.startswith(f"{index}/")}
        encoder.parts_.append(Part.kinds[part["kind"]].from_state(PartState(part["values"], own)))
    encoder.restore(values["record"])
    encoded = [name for part in encoder.parts_ for name in part.columns]
    if not encoded or not set(checked_texts(encoded)) <= encoder.roles_.keys() <= set(encoder.columns_):
        raise ValueError("parts and columns do not match")
    numeric = {name for part in encoder.parts_ if isinstance(part, NumericPart) for name in part.columns}
    if any(encoder.roles_[name].role is not Role.NUMERIC for name in numeric):
        raise ValueError("numeric parts of other columns")
    return encoder


def _plain_parameters(encoder: TableEncoder) -> dict[str, Any]:
    """Return the constructor's parameters as JSON values, without those of the place where the encoder was fitted."""
    given = encoder.get_params(deep=False)
    parameters = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    for name in ("cache_dir", "device"):
        parameters.pop(name, None)
    if parameters.get("roles"):
        parameters["roles"] = {name: str(role) for name, role in parameters["roles"].items()}
    return parameters


@dataclass(frozen=True)
class TrimmedEncoder:
    """An encoder without unused strings, and how many were removed and how many kept because others depend on them."""

    encoder: TableEncoder
    removed: int
    kept: int


def without_unused_strings(encoder: TableEncoder, rows: Mapping[str, pd.Series[Any]] | pd.DataFrame) -> TrimmedEncoder:
    """Return an encoder without the strings that only forgotten rows had, except those that other codes depend on.

    It encodes the remaining ``rows`` as before. Scales, class shares and network weights stay as they were learnt.
    """
    roles = encoder.roles_
    trimmed: list[tuple[Part, int, int]] = []
    for part in encoder.parts_:
        # Numbers are no strings, and finding all distinct ones would take long.
        columns = [] if isinstance(part, NumericPart) else part.columns
        present = [factorise(as_role(rows[name], roles[name].role))[1] for name in columns]
        trimmed.append(part.without_unused(present) if columns else (part, 0, 0))
    without = copy.copy(encoder)
    without.parts_ = [part for part, _, _ in trimmed]
    return TrimmedEncoder(without, sum(removed for _, removed, _ in trimmed), sum(kept for _, _, kept in trimmed))
