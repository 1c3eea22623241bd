"""Settings of one table in the catalogue: where it is, what to predict, how to condense it.

Only values and their limits belong here; catalogue files are read in :mod:`c2tc_pipeline.tables.catalogue`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    field_validator,
    model_validator,
)

from c2tc_pipeline.common.devices import check_engine
from c2tc_pipeline.sources.addresses import address_of
from c2tc_pipeline.tables.roles import Role

DEFAULT_RATIOS = (0.01, 0.001, 0.0001)

Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Ratio = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**32)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SplitSettings(_Settings):
    """How rows are divided into train, validation and test.

    Parameters
    ----------
    seed : int
        Decides which rows go where.
    validation, test : float
        Shares of the rows, together below 1.
    group_duplicates : bool
        Keep rows with equal features on one side.
    """

    seed: Seed = 0
    validation: Share = 0.1
    test: Share = 0.1
    group_duplicates: StrictBool = False

    @model_validator(mode="after")
    def _leaves_rows_to_train_on(self) -> Self:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test together must be below 1")
        return self


class CondenseSettings(_Settings):
    """How a table is condensed.

    Parameters
    ----------
    seed : int
        Decides every random choice.
    strings : str
        Encoding of string columns: by similarity, by target mean, or column by column whichever fits.
    numeric : str
        Scaling of numeric columns.
    allocation : str
        How the condensed rows are divided over the classes.
    gamma : float or "auto"
        Exponent of the class sizes in the objective, from 0 to 1.
    representative : str
        Whether a condensed row is a cluster's mean or the real row nearest to it.
    min_rows_per_condensed_row : int
        Minimum number of source rows in every cluster.
    device : str
        Where the heavy work runs.
    engine : str
        Where curves and clusters are computed: ``"local"`` or the address of a Dask scheduler, such as
        ``"dask://host:8786"``. The result is the same, so no version depends on it.
    """

    seed: Seed = 0
    strings: Literal["auto", "similarity", "target"] = "auto"
    numeric: Literal["quantile", "minmax"] = "quantile"
    allocation: Literal["hfils", "optimal", "ratio", "fipc"] = "hfils"
    gamma: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = 0.25
    representative: Literal["centroid", "medoid"] = "centroid"
    min_rows_per_condensed_row: Annotated[StrictInt, Field(ge=1)] = 1
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    engine: Annotated[str, AfterValidator(check_engine)] = "local"

    @model_validator(mode="after")
    def _medoids_have_no_minimum(self) -> Self:
        if self.min_rows_per_condensed_row > 1 and self.representative == "medoid":
            raise ValueError(
                "min_rows_per_condensed_row can't be above 1 with the representative 'medoid', which is a real row; "
                "choose 'centroid'"
            )
        return self


class EvaluationSettings(_Settings):
    """How a condensed table is tested.

    Parameters
    ----------
    models : tuple of str
        Which models are trained.
    seeds : int
        How many times each of them is trained.
    recipe : str
        How networks are trained.
    """

    models: Annotated[tuple[str, ...], Field(min_length=1)] = ("mlp", "boosting")
    seeds: Annotated[StrictInt, Field(ge=1, le=100)] = 3
    recipe: Literal["default", "paper"] = "default"


class CheckSettings(_Settings):
    """When a pipeline stops, and when it warns.

    Parameters
    ----------
    baseline : int
        Later deliveries must fit the first one that was accepted under this number; raise it to accept other columns or
        classes.
    drift : float
        Warn when the shares of the classes moved by more than this since the last accepted delivery (total variation
        distance).
    accuracy_margin : float
        Warn when a model trained on condensed rows is that much less accurate than one trained on all of them.
    repeated_rows : float
        The share of condensed rows that may repeat a source row.
    on_repeated_rows : str
        What happens when there are more: a warning, or no condensed table.
    """

    baseline: Annotated[StrictInt, Field(ge=1)] = 1
    drift: Share = 0.1
    accuracy_margin: Share = 0.1
    repeated_rows: Share = 0.1
    on_repeated_rows: Literal["warn", "stop"] = "warn"

    @model_validator(mode="before")
    @classmethod
    def _gap_is_fixed(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and "gap" in fields:
            raise ValueError("gap is no longer a setting: the check near_bound always warns above 10 %; remove it")
        return fields


def _address(source: object) -> object:
    return address_of(source) if isinstance(source, dict) else source


class TableSpec(_Settings):
    """One table of the catalogue.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and underscores, beginning with a letter; it becomes part of paths.
    source : str
        A path, relative to the catalogue, or an address, or a mapping such as
        ``{"sqlite": {"file": "a.db", "table": "t"}}``, see :func:`c2tc_pipeline.sources.addresses.address_of`.
    label : str
        The column to predict.
    description : str
        Free text.
    roles : dict of str to Role
        Columns whose role is not left to inference.
    ratios : tuple of float
        Condensed sizes as shares of the training rows.
    split : SplitSettings
        How rows are divided.
    settings : CondenseSettings
        How the table is condensed.
    evaluation : EvaluationSettings
        How the condensed table is tested.
    checks : CheckSettings
        When a pipeline stops, and when it warns.

    Examples
    --------
    >>> TableSpec(name="adult", source="adult.csv", label="income", roles={"zip": "code"}).ratios
    (0.01, 0.001, 0.0001)
    """

    name: Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_]*\z", max_length=64)]
    source: Annotated[str, Field(min_length=1), BeforeValidator(_address)]
    label: Annotated[str, Field(min_length=1)]
    description: str = ""
    roles: dict[str, Role] = Field(default_factory=dict)
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)] = DEFAULT_RATIOS
    split: SplitSettings = SplitSettings()
    settings: CondenseSettings = CondenseSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    checks: CheckSettings = CheckSettings()

    @field_validator("ratios")
    @classmethod
    def _each_ratio_once(cls, ratios: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(ratios)) < len(ratios):
            raise ValueError("each ratio may stand there once only")
        return ratios

    @model_validator(mode="after")
    def _label_has_no_role(self) -> Self:
        if self.label in self.roles:
            raise ValueError(f"the label {self.label!r} can't have a role; remove it from the roles")
        return self
