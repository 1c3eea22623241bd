"""Experiments as data: the YAML grids, the tables that they run on, and the numbers that the paper prints.

``paper_numbers.csv`` is a tidy retabulation of the results in Sijia Xu, Fan Li, Xiaoyang Wang, Zhengyi Yang and Xuemin
Lin, "C2TC: A Training-Free Framework for Efficient Tabular Data Condensation", as printed, scores in percent. Names
are ours: the paper's own method is ``"ours"``. Its rivals ran on label-encoded columns. Averages over architectures
are left out. The sizes that it scales over are shares of its tables; here they are shares of 1.2 million rows and of
2,000 columns.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, field_validator, model_validator

from c2tc_pipeline.bench.experiments import experiment_path
from c2tc_pipeline.bench.experiments.spaces import ORIGINAL, SPACES
from c2tc_pipeline.bench.rivals import COSTLY, RIVALS, SAME_CLASSES
from c2tc_pipeline.common.defaults import CATALOGUE
from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.evaluation.metrics import METRICS
from c2tc_pipeline.evaluation.models import MODELS
from c2tc_pipeline.evaluation.training import RECIPES
from c2tc_pipeline.tables.catalogue import load_catalogue, load_yaml
from c2tc_pipeline.tables.spec import Ratio, TableSpec

PAPER_TABLES = Path(__file__).parent / "paper_tables.yaml"
PAPER_NUMBERS = Path(__file__).parent / "paper_numbers.csv"
TUNING_TABLES = ("departures", "adult", "electricity", "diabetes130us", "covertype")
DEFAULT_TABLE = "departures"
REPORTING_TABLES = ("airlines", "road_safety", "jannis", "higgs", "microsoft")
"""Settings are chosen on the tuning tables; the others are for reporting only."""
OURS = "ours"
Setting = bool | int | float | str
ClassMixName = Literal["own", "ours", "equal"]
_MIX_VARIANTS = {"ours": "our classes", "equal": "equal classes"}
Positive = Annotated[float, Field(gt=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Contender(_Part):
    """A method with its settings; ``variant`` tells it from the same method with other settings.

    A rival divides its rows over the classes in its own way, which is that of the source; with ``class_mix: ours`` as
    ours does, with our class weights; or with ``class_mix: equal`` in equal parts (the paper's FIPC).
    """

    method: str
    variant: str = ""
    settings: dict[str, Setting] = Field(default_factory=dict)
    class_mix: ClassMixName = "own"

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method != OURS and method not in RIVALS:
            raise ValueError(f"there is no method {method!r}; {closest(method, (OURS, *RIVALS))}")
        return method

    @model_validator(mode="after")
    def _mix_fits_the_method(self) -> Self:
        if self.class_mix != "own" and self.method == "random":
            raise ValueError(f"uniform rows have no class mix to set; name the method {SAME_CLASSES!r}")
        return self

    @property
    def has_our_classes(self) -> bool:
        """Whether this is a rival with the class counts and class weights of ours."""
        return self.method == SAME_CLASSES or (self.class_mix == "ours" and self.method != OURS)

    def with_mix(self, mix: str) -> Contender:
        """Return the same rival with another class mix, which its variant names."""
        variant = ", ".join(filter(None, [self.variant, _MIX_VARIANTS[mix]]))
        return self.model_copy(update={"class_mix": mix, "variant": variant})


class Imbalance(_Part):
    """Training rows whose two-valued feature is skewed: ``levels`` rows of one value against one of the other."""

    columns: dict[str, str]
    levels: Annotated[tuple[Positive, ...], Field(min_length=1)]


class Shape(_Part):
    """The size of a synthetic table; ``classes`` are shares."""

    rows: Annotated[StrictInt, Field(ge=100)]
    columns: Annotated[StrictInt, Field(ge=1)]
    classes: Annotated[tuple[Positive, ...], Field(min_length=2)]


class Scaling(_Part):
    """Condensation of growing shares of the rows or columns of a synthetic table with the size of table ``like``."""

    like: str
    shape: Shape
    vary: Literal["rows", "columns"]
    shares: Annotated[tuple[Ratio, ...], Field(min_length=1)]


class Show(_Part):
    """Layout of the scores: what is side by side, which metrics, and which figure is drawn."""

    columns: tuple[Literal["method", "space", "variant", "model"], ...] = ("method",)
    metrics: tuple[
        Literal["accuracy", "macro_f1", "auc", "log_loss", "brier", "condense_seconds", "fit_seconds", "objective"],
        ...,
    ] = ("accuracy", "macro_f1")
    figure: Literal["ratios", "bars", "lines", "front", "worth", "seconds", "scaling", "none"] = "none"


class Experiment(_Part):
    """A table or a figure as a grid.

    Every seed is a split of the rows that are not for testing, a condensation of its training rows and an
    initialisation of the models. Splits of one table share rows, so that seeds are not independent of each other.

    Parameters
    ----------
    name, title, question : str
        Its name, heading and purpose.
    tables : tuple of str
        Names of tables.
    ratios : tuple of float
        Condensed rows as shares of the training rows.
    spaces : tuple of str
        Column spaces; see :data:`~c2tc_pipeline.bench.experiments.spaces.SPACES`. ``original`` beside them is for rows
        that are condensed in the first space, and models that take them in the source's columns.
    methods : tuple of Contender
        In a file a name alone stands for the method with its defaults, ``rivals`` for all rivals of moderate cost,
        ``matching`` for the costly ones, and ``sweep`` for one contender per value of a setting.
    class_mix : tuple of {"own", "ours", "equal"}
        How each rival divides the rows over the classes, as in :class:`Contender`; once for each of these.
    multiples : tuple of float
        Sizes of random samples, in multiples of the condensed rows, that the worth of a condensed row is measured by.
    most_multiple : dict of str to float
        The largest multiple for models that take long.
    models : tuple of str
        Models that are trained on condensed rows; none where only seconds count.
    seeds, first_seed, model_seeds : int
        Repetitions, the seed of the first one, and models trained in each of them.
    fewer_seeds : dict of str to int
        The repetitions of tables that take long.
    judged_on : {"test", "validation"}
        The rows that models are scored on. Settings are chosen on validation rows of :data:`TUNING_TABLES`, so that
        test rows and all other tables are fresh when the choice is judged; ``gamma: auto`` has then seen the rows that
        it is scored on.
    recipe : str
        How networks are trained.
    whole : bool or int
        Whether the models are trained on the whole table, too, or with how many of the seeds.
    time_limit, memory_limit : float
        Seconds and gigabytes of one condensation before it counts as out of time or memory.
    group_duplicates : bool
        Keep rows with equal features on one side of the split, whatever the table's description says.
    timed : bool
        Measure seconds: no cache, and one process after the other.
    imbalance : Imbalance, optional
        Skew a feature of the training rows.
    scaling : Scaling, optional
        Use parts of a synthetic table instead of ``tables``.
    show : Show
        Layout of the scores.
    """

    name: str
    title: str
    question: str = ""
    tables: tuple[str, ...] = ()
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)]
    spaces: Annotated[tuple[str, ...], Field(min_length=1)] = ("hcfe",)
    methods: Annotated[tuple[Contender, ...], Field(min_length=1)]
    models: tuple[str, ...] = ("mlp",)
    class_mix: Annotated[tuple[ClassMixName, ...], Field(min_length=1)] = ("own",)
    multiples: tuple[Positive, ...] = ()
    most_multiple: dict[str, Positive] = Field(default_factory=dict)
    seeds: Annotated[StrictInt, Field(ge=1, le=100)] = 5
    fewer_seeds: dict[str, StrictInt] = Field(default_factory=dict)
    model_seeds: Annotated[StrictInt, Field(ge=1, le=100)] = 1
    first_seed: Annotated[StrictInt, Field(ge=0, le=1_000_000)] = 0
    judged_on: Literal["test", "validation"] = "test"
    recipe: str = "default"
    whole: bool | StrictInt = True
    time_limit: Positive = 3_600
    memory_limit: Positive = 16
    group_duplicates: bool = False
    timed: bool = False
    imbalance: Imbalance | None = None
    scaling: Scaling | None = None
    show: Show = Show()

    @field_validator("methods", mode="before")
    @classmethod
    def _expanded(cls, methods: Any) -> Any:
        if not isinstance(methods, list | tuple):
            raise ValueError("it must be a list of methods")
        return list(itertools.chain.from_iterable(_contenders(entry) for entry in methods))

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for names, known, what in (
            (self.spaces, (*SPACES, ORIGINAL), "column space"),
            (self.models, MODELS, "model"),
            ((self.recipe,), RECIPES, "recipe"),
        ):
            for name in names:
                if name not in known:
                    raise ValueError(f"there is no {what} {name!r}; {closest(name, known)}")
        named = [(contender.method, contender.variant) for contender in self.methods]
        for method, variant in named:
            if named.count((method, variant)) > 1:
                raise ValueError(f"method {method!r} is listed twice as {variant!r}; give each a variant of its own")
        if not self.tables and self.scaling is None:
            raise ValueError("it names no tables; add some")
        if not self.encodings:
            raise ValueError(f"it needs a column space beside {ORIGINAL!r} to condense in; add one")
        for table in REPORTING_TABLES:
            if self.judged_on == "validation" and table in self.tables:
                raise ValueError(
                    f"table {table!r} is for reporting only; choose settings on {', '.join(TUNING_TABLES)}"
                )
        skewed = self.tables if self.imbalance is None else self.imbalance.columns
        for table in self.tables:
            if table not in skewed:
                raise ValueError(f"it does not say which column of table {table!r} to skew; add it")
        return self

    @property
    def encodings(self) -> list[str]:
        """The column spaces that rows are condensed in."""
        return [space for space in self.spaces if space != ORIGINAL]

    @property
    def contenders(self) -> list[Contender]:
        """The methods, with the class mixes of the experiment; ours and random rows have one mix each."""
        alone = (OURS, "random", "stratified", SAME_CLASSES)
        found = [c for c in self.methods if "own" in self.class_mix or c.method in alone]
        others = [mix for mix in _MIX_VARIANTS if mix in self.class_mix]
        return found + [c.with_mix(mix) for mix in others for c in self.methods if c.method not in alone]

    def restricted(self, *, methods: tuple[str, ...] = (), without: tuple[str, ...] = (), **changes: Any) -> Experiment:
        """Return the same experiment with only some methods, and with other values of fields.

        A field whose new value is None or an empty tuple stays as it is.
        """
        changes = {name: value for name, value in changes.items() if value not in (None, ())}
        there = dict.fromkeys(contender.method for contender in self.methods)
        for name in (*methods, *without):
            if name not in there:
                raise InputError(f"There is no method {name!r} in experiment {self.name!r}; {closest(name, there)}.")
        kept = [name for name in methods or there if name not in without]
        changes["methods"] = tuple(contender for contender in self.methods if contender.method in kept)
        return _validated({**self.model_dump(), **changes}, f"The experiment {self.name!r}")


def load_experiment(name: str) -> Experiment:
    """Read an experiment of the package by its name, or one of your own from a YAML file.

    Examples
    --------
    >>> load_experiment("overall").ratios
    (0.01, 0.001, 0.0001)
    """
    path = experiment_path(name)
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


def tables_of(
    experiment: Experiment, *, data: Path | None = None, catalogue: Path | None = None
) -> dict[str, TableSpec]:
    """Return the tables of an experiment with sources that can be opened.

    They are the paper's, as Parquet files in the folder ``data``, and the default table, or those of a catalogue.
    Raises InputError when a table is not there.
    """
    if experiment.scaling is not None:
        return {}
    if catalogue is not None:
        loaded = load_catalogue(catalogue)
        described = {name: loaded.table(name) for name in experiment.tables}
        return {n: spec.model_copy(update={"source": loaded.resolve_source(spec)}) for n, spec in described.items()}
    if data is None:
        raise InputError(
            f"The experiment {experiment.name!r} needs tables; name the folder of the paper's with --data, or tables "
            "of a catalogue with --catalogue and --tables."
        )
    specs = {name: paper_table(name, data) for name in experiment.tables}
    absent = [name for name, spec in specs.items() if not Path(spec.source).is_file()]
    if absent:
        raise InputError(
            f"There is no {absent[0]}.parquet in {str(data)!r}; name the folder that has it with --data, or choose "
            "among the tables that are there with --tables."
        )
    return specs


def paper_table(name: str, data: Path) -> TableSpec:
    """Return the description of one of the paper's tables, with its Parquet file in a folder as the source.

    The default table is found in the default catalogue where the folder lacks it.
    """
    spec = load_catalogue(PAPER_TABLES).table(name)
    source = data / spec.source
    if not source.is_file() and name == DEFAULT_TABLE and CATALOGUE.is_file():
        source = CATALOGUE.parent / spec.source
    return spec.model_copy(update={"source": str(source)})


def paper_numbers(experiment: str) -> pd.DataFrame | None:
    """Return what the paper prints for an experiment, scores as shares of one; None where it prints nothing.

    Columns: ``experiment``, ``table``, ``ratio``, ``method``, ``space``, ``variant``, ``model``, ``metric``, ``mean``,
    ``std`` and ``status``, which is "OOT" or "OOM" where the paper says so and "under" for an upper bound.
    """
    numbers = _all_paper_numbers()
    chosen = numbers[numbers["experiment"] == experiment].reset_index(drop=True)
    return None if chosen.empty else chosen


@cache
def _all_paper_numbers() -> pd.DataFrame:
    texts = ("experiment", "table", "method", "space", "variant", "model", "metric", "status")
    types = {name: str for name in texts} | {name: float for name in ("ratio", "mean", "std")}
    # An empty text is a text, an empty number is missing.
    missing = {"ratio": "", "mean": "", "std": ""}
    numbers = pd.read_csv(PAPER_NUMBERS, dtype=types, keep_default_na=False, na_values=missing)
    percent = numbers["metric"].isin(METRICS)
    for name in ("mean", "std"):
        # Rounded, so that 57.6 percent are 0.576 and not its neighbour.
        numbers[name] = numbers[name].where(~percent, (numbers[name] / 100).round(6))
    return numbers
