"""The paper's experiments: grids, tables, runs, and the numbers that the paper prints."""

from pathlib import Path

from c2tc_pipeline.common.errors import InputError, closest

GRIDS = Path(__file__).parent / "grids"


def experiment_names() -> list[str]:
    """Return the names of the experiments that come with the package."""
    return sorted(path.stem for path in GRIDS.glob("*.yaml"))


def experiment_path(name: str) -> Path:
    """Return the file of an experiment of the package, or of a YAML file of your own; refuse an unknown name."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else GRIDS / f"{name}.yaml"
    if not path.is_file():
        raise InputError(
            f"There is no experiment {name!r}; {closest(name, experiment_names())}, or give a YAML file of your own."
        )
    return path
