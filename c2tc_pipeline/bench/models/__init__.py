"""The paper's networks, module and classifier in one file each, and LightGBM; importing this package registers them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models import MODELS

MODELS["mlp_plr"] = f"{__name__}.mlp_plr:MlpPlrClassifier"
MODELS["realmlp"] = f"{__name__}.realmlp:RealMlpClassifier"
MODELS["ft_transformer"] = f"{__name__}.ft_transformer:FtTransformerClassifier"
MODELS["tabnet"] = f"{__name__}.tabnet:TabNetClassifier"
MODELS["tabr"] = f"{__name__}.tabr:TabrClassifier"
MODELS["lightgbm"] = f"{__name__}.lightgbm:LightGbmClassifier"


def bench_package(name: str) -> ModuleType:
    """Import a module of the extra ``bench``, or raise InputError with the command that installs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise InputError(f"The package {package} is not installed; run: pip install 'c2tc_pipeline[bench]'.") from error
