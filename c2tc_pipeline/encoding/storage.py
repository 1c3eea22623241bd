"""Encoders on disk: one JSON file with values, one safetensors file with arrays, no pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.binary import BinaryPart
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder, LabelPart
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.onehot import OneHotPart, OneHotPcaEncoder
from c2tc_pipeline.encoding.part import Part
from c2tc_pipeline.encoding.similarity import SimilarityPart
from c2tc_pipeline.encoding.stored_state import texts
from c2tc_pipeline.encoding.target import TargetPart
from c2tc_pipeline.encoding.target_encoder import TargetEncoder
from c2tc_pipeline.storage.hashing import hash_file, hash_json
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline.tables.roles import ColumnRole, Role

FORMAT = "c2tc-encoder/1"
VALUES_NAME = "encoder.json"
ARRAYS_NAME = "encoder.safetensors"

ENCODERS: dict[str, type[TableEncoder]] = {
    kind.__name__: kind for kind in (HybridEncoder, LabelEncoder, OneHotPcaEncoder, TargetEncoder)
}
PARTS: dict[str, type[Part]] = {
    kind.kind: kind for kind in (NumericPart, BinaryPart, TargetPart, SimilarityPart, LabelPart, OneHotPart)
}


def save_encoder(encoder: TableEncoder, directory: str | Path) -> None:
    """Write a fitted encoder into a directory.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> rows = pd.DataFrame({"x": [1.0, 2.5, 4.0]})
    >>> encoder = HybridEncoder().fit(rows, [0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_encoder(encoder, folder)
    ...     np.array_equal(load_encoder(folder).transform(rows), encoder.transform(rows))
    True
    """
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
    except (KeyError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError):
        raise DamagedArtefactError(damaged) from None
    except (SafetensorError, MemoryError):
        raise DamagedArtefactError(damaged) from None


def _rebuilt(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> TableEncoder:
    encoder = ENCODERS[values["encoder"]](**_tuples(values["parameters"]))
    encoder.columns_ = texts(values["columns"])
    encoder.n_features_in_ = len(encoder.columns_)
    if values["named"]:
        encoder.feature_names_in_ = np.array(encoder.columns_, dtype=object)
    encoder.classes_ = None if values["classes"] is None else np.array(values["classes"])
    encoder.roles_ = {v["name"]: ColumnRole(**{**v, "role": Role(v["role"])}) for v in values["roles"]}
    encoder.parts_ = []
    for index, part in enumerate(values["parts"]):
        own = {name.split("/", 1)[1]: a for name, a in arrays.items() if name.startswith(f"{index}/")}
        encoder.parts_.append(PARTS[part["kind"]].from_state(part["values"], own))
    encoder.restore(values["record"])
    encoded = [name for part in encoder.parts_ for name in part.columns]
    if not encoded or not set(texts(encoded)) <= encoder.roles_.keys() <= set(encoder.columns_):
        raise ValueError("parts for other columns")
    numeric = {name for part in encoder.parts_ if isinstance(part, NumericPart) for name in part.columns}
    if any(encoder.roles_[name].role is not Role.NUMERIC for name in numeric):
        raise ValueError("numbers of columns that are none")
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


def _tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
