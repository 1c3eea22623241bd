"""The paper's networks, module and classifier in one file each; importing this package registers them."""

from __future__ import annotations

from c2tc_pipeline.evaluation.models import MODELS

MODELS["mlp_plr"] = f"{__name__}.mlp_plr:MlpPlrClassifier"
MODELS["realmlp"] = f"{__name__}.realmlp:RealMlpClassifier"
MODELS["ft_transformer"] = f"{__name__}.ft_transformer:FtTransformerClassifier"
MODELS["tabnet"] = f"{__name__}.tabnet:TabNetClassifier"
MODELS["tabr"] = f"{__name__}.tabr:TabrClassifier"
