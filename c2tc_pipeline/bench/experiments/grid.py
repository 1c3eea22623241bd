"""Experiments as data: which methods on which tables, judged by which models, and how often.

What belongs here: what an experiment's YAML file may say, and reading it. What does not: running it (:mod:`.runner`)
and showing it (``experiment_*.py`` in :mod:`c2tc_pipeline.reports`).
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, field_validator, model_validator

from c2tc_pipeline.bench.experiments.spaces import SPACES
from c2tc_pipeline.bench.rivals import COSTLY, RIVALS
from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.evaluation.models import MODELS
from c2tc_pipeline.evaluation.training import RECIPES
from c2tc_pipeline.tables.spec import Ratio
from c2tc_pipeline.tables.strict_yaml import load_yaml

GRIDS = Path(__file__).parent / "grids"
OURS = "ours"
Setting = bool | int | float | str


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Contender(_Part):
    """A method with its settings.

    Parameters
    ----------
    method : str
        ``"ours"``, or a rival's name.
    variant : str
        What sets it apart from the same method with other settings.
    settings : dict
        Parameters of the method, by name.
    spaces : tuple of str
        Column spaces it runs in, instead of the experiment's.

    Examples
    --------
    >>> Contender(method="ours", variant="ratio", settings={"allocation": "ratio"}).variant
    'ratio'
    """

    method: str
    variant: str = ""
    settings: dict[str, Setting] = Field(default_factory=dict)
    spaces: tuple[str, ...] = ()

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method != OURS and method not in RIVALS:
            raise ValueError(f"there is no method {method!r}; {closest(method, (OURS, *RIVALS))}")
        return method


class Imbalance(_Part):
    """A training set whose two-valued feature is made more and more one-sided.

    Parameters
    ----------
    columns : dict of str to str
        The column of each table.
    levels : tuple of float
        How many rows of one value stand against one of the other.
    """

    columns: dict[str, str]
    levels: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)]


class Shape(_Part):
    """A made table, for runs that need more rows or columns than there are at hand.

    Parameters
    ----------
    rows, columns : int
        Its size.
    classes : tuple of float
        Shares of the classes.
    """

    rows: Annotated[StrictInt, Field(ge=100)]
    columns: Annotated[StrictInt, Field(ge=1)]
    classes: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=2)]


class Scaling(_Part):
    """Condensation of ever larger parts of a made table.

    Parameters
    ----------
    like : str
        The table whose size it has.
    shape : Shape
        The whole of it.
    vary : {"rows", "columns"}
        What the parts are parts of.
    shares : tuple of float
        How large they are.
    """

    like: str
    shape: Shape
    vary: Literal["rows", "columns"]
    shares: Annotated[tuple[Ratio, ...], Field(min_length=1)]


class Show(_Part):
    """How the scores are laid out.

    Parameters
    ----------
    columns : tuple of str
        Fields of a score whose values stand side by side.
    metrics : tuple of str
        What is shown of each.
    figure : str
        Which figure is drawn.
    """

    columns: tuple[Literal["method", "space", "variant", "model"], ...] = ("method",)
    metrics: tuple[Literal["accuracy", "macro_f1", "condense_seconds", "fit_seconds", "objective"], ...] = (
        "accuracy",
        "macro_f1",
    )
    figure: Literal["ratios", "bars", "lines", "seconds", "scaling", "none"] = "none"


class Experiment(_Part):
    """A table or a figure as a grid.

    Every seed is a split, a condensation of its training rows and a start of the models, all of their own. Splits of
    one table still share rows, so that seeds are not independent of each other.

    Parameters
    ----------
    name : str
        What it is called.
    title : str
        What it shows, as a heading.
    question : str
        What it answers.
    tables : tuple of str
        Names of tables.
    ratios : tuple of float
        Condensed rows as shares of the training rows.
    spaces : tuple of str
        Column spaces; see :data:`~c2tc_pipeline.bench.experiments.spaces.SPACES`.
    methods : tuple of Contender
        Who takes part. In a file a name alone stands for the method as it is, ``rivals`` for all rivals of moderate
        cost, ``matching`` for the costly ones, and ``sweep`` for one contender a value of a setting.
    models : tuple of str
        Who judges; none where only seconds count.
    seeds, model_seeds : int
        Repetitions, and models trained in each of them.
    first_seed : int
        The seed of the first repetition: settings that were chosen on some splits can be judged on others.
    judged_on : {"test", "validation"}
        Which rows of each split the models are scored on. Settings are chosen on validation rows, so that test rows
        are fresh when the choice is judged. What a method may look at stays the same: one that chooses ``gamma`` by
        itself has then seen the rows that it is judged on.
    recipe : str
        How networks are trained.
    whole : bool
        Whether the models are trained on the whole table, too.
    time_limit, memory_limit : float
        Seconds and gigabytes that one condensation may take before it counts as out of time or memory.
    group_duplicates : bool
        Keep rows with equal features on one side of the split, whatever the table's description says.
    timed : bool
        Seconds are what counts: nothing is looked up, and one process runs after the other.
    imbalance : Imbalance, optional
        Distort the training rows.
    scaling : Scaling, optional
        Use parts of a made table instead of ``tables``.
    show : Show
        How the scores are laid out.
    """

    name: str
    title: str
    question: str = ""
    tables: tuple[str, ...] = ()
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)]
    spaces: Annotated[tuple[str, ...], Field(min_length=1)] = ("hcfe",)
    methods: Annotated[tuple[Contender, ...], Field(min_length=1)]
    models: tuple[str, ...] = ("mlp",)
    seeds: Annotated[StrictInt, Field(ge=1, le=100)] = 5
    model_seeds: Annotated[StrictInt, Field(ge=1, le=100)] = 1
    first_seed: Annotated[StrictInt, Field(ge=0, le=1_000_000)] = 0
    judged_on: Literal["test", "validation"] = "test"
    recipe: str = "default"
    whole: bool = True
    time_limit: Annotated[float, Field(gt=0)] = 3_600
    memory_limit: Annotated[float, Field(gt=0)] = 16
    group_duplicates: bool = False
    timed: bool = False
    imbalance: Imbalance | None = None
    scaling: Scaling | None = None
    show: Show = Show()

    @field_validator("methods", mode="before")
    @classmethod
    def _spelt_out(cls, methods: Any) -> Any:
        if not isinstance(methods, list | tuple):
            raise ValueError("it must be a list of methods")
        return list(itertools.chain.from_iterable(_contenders(entry) for entry in methods))

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for names, known, what in (
            (
                (*self.spaces, *(space for contender in self.methods for space in contender.spaces)),
                SPACES,
                "column space",
            ),
            (self.models, MODELS, "model"),
            ((self.recipe,), RECIPES, "recipe"),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(f"there is no {what} {name!r}; {closest(name, known)}")
        named = [(contender.method, contender.variant) for contender in self.methods]
        for method, variant in named:
            if named.count((method, variant)) > 1:
                raise ValueError(f"method {method!r} stands there twice as {variant!r}; give each a variant of its own")
        if not self.tables and self.scaling is None:
            raise ValueError("it names no tables; add some")
        if self.imbalance is not None:
            for table in self.tables:
                if table not in self.imbalance.columns:
                    raise ValueError(f"it does not say which column of table {table!r} to make one-sided; add it")
        return self

    def restricted(
        self,
        *,
        tables: tuple[str, ...] = (),
        ratios: tuple[float, ...] = (),
        spaces: tuple[str, ...] = (),
        methods: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        models: tuple[str, ...] = (),
        **protocol: Any,
    ) -> Experiment:
        """Return the same experiment with fewer methods, or with other tables, ratios, spaces, models or protocol.

        Parameters
        ----------
        tables, ratios, spaces, models : tuple
            Instead of those of the experiment; none leaves these. A method that names spaces of its own keeps them.
        methods, without : tuple of str
            Only these methods, and none of those.
        **protocol
            Other fields by name, such as ``seeds`` or ``recipe``; None leaves a field as it is.

        Examples
        --------
        >>> len(load_experiment("overall").restricted(methods=("ours", "random")).methods)
        2
        """
        others = {"tables": tables, "ratios": ratios, "spaces": spaces, "models": models}
        changes: dict[str, Any] = {name: values for name, values in others.items() if values}
        changes.update({name: value for name, value in protocol.items() if value is not None})
        there = dict.fromkeys(contender.method for contender in self.methods)
        for name in (*methods, *without):
            if name not in there:
                raise InputError(f"There is no method {name!r} in experiment {self.name!r}; {closest(name, there)}.")
        kept = [name for name in methods or there if name not in without]
        changes["methods"] = tuple(contender for contender in self.methods if contender.method in kept)
        return _validated({**self.model_dump(), **changes}, f"The experiment {self.name!r}")


def experiment_names() -> list[str]:
    """Return the names of the experiments that come with the package.

    Examples
    --------
    >>> "overall" in experiment_names()
    True
    """
    return sorted(path.stem for path in GRIDS.glob("*.yaml"))


def load_experiment(name: str) -> Experiment:
    """Read an experiment of the package by its name, or one of your own from a YAML file.

    Examples
    --------
    >>> load_experiment("overall").ratios
    (0.01, 0.001, 0.0001)
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else GRIDS / f"{name}.yaml"
    if not path.is_file():
        raise InputError(
            f"There is no experiment {name!r}; {closest(name, experiment_names())}, or give a YAML file of your own."
        )
    content = load_yaml(path)
    if not isinstance(content, dict):
        raise InputError(f"The experiment {path} must be a mapping of fields; see those that come with the package.")
    return _validated({"name": path.stem, **content}, f"The experiment {path}")


def _validated(fields: dict[str, Any], place: str) -> Experiment:
    try:
        return Experiment.model_validate(fields)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        message = str(problem["msg"]).removeprefix("Value error, ")
        raise InputError(
            f"{place}{f', field {where!r}' if where else ''}: {message[:1].lower() + message[1:]}."
        ) from None


def _contenders(entry: Any) -> list[Any]:
    if entry == "rivals":
        return [{"method": name} for name in RIVALS if name not in COSTLY]
    if entry == "matching":
        return [{"method": name} for name in COSTLY]
    if isinstance(entry, str):
        return [{"method": entry}]
    if isinstance(entry, dict) and isinstance(entry.get("sweep"), dict):
        rest = {name: value for name, value in entry.items() if name != "sweep"}
        fixed = rest.pop("settings", None) or {}
        if not isinstance(fixed, dict):
            raise ValueError("the settings beside a sweep must be a mapping")
        for setting, values in entry["sweep"].items():
            if not isinstance(values, list):
                raise ValueError(f"the sweep over {setting!r} must be a list of values")
        return [
            {**rest, "variant": f"{setting}={value}", "settings": {**fixed, setting: value}}
            for setting, values in entry["sweep"].items()
            for value in values
        ]
    return [entry]
