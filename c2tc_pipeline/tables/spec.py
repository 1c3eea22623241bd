"""Settings of one table in the catalogue: where it is, what to predict, how to condense it.

Only values and their limits belong here; catalogue files are read in :mod:`c2tc_pipeline.tables.catalogue`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

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

from c2tc_pipeline.common.defaults import Role
from c2tc_pipeline.common.devices import check_engine
from c2tc_pipeline.sources.addresses import address_of

DEFAULT_RATIOS = (0.01, 0.001, 0.0001)

Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Ratio = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**32)]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SplitSettings(_Settings):
    """Shares of the rows for validation and test, together below 1; the rest is for training.

    With ``group_duplicates`` rows with equal features stay on one side.
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
    """Settings of condensing a table; docs/condense.md describes each.

    Results do not depend on ``engine``, so that no code version does.
    """

    seed: Seed = 0
    strings: Literal["auto", "similarity", "target"] = "auto"
    numeric: Literal["quantile", "minmax"] = "quantile"
    allocation: Literal["hfils", "optimal", "ratio", "fipc"] = "hfils"
    gamma: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = 0.25
    representative: Literal["centroid", "medoid"] = "centroid"
    min_rows_per_condensed_row: Annotated[StrictInt, Field(ge=1)] = 1
    min_category_rows: Annotated[StrictInt, Field(ge=1)] = 1
    column_weights: Literal["auto", "none"] | dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = "auto"
    expand_rows: Annotated[StrictInt, Field(ge=1)] | None = None
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
    """Settings of an evaluation: the models, the trainings of each, and the recipe of networks."""

    models: Annotated[tuple[str, ...], Field(min_length=1)] = ("mlp", "boosting")
    seeds: Annotated[StrictInt, Field(ge=1, le=100)] = 3
    recipe: Literal["default", "paper"] = "default"


class CheckSettings(_Settings):
    """When a pipeline stops, and when it warns.

    Deliveries must fit the first one that was accepted under the number ``baseline``. The others are limits above which
    a check warns: how far the shares of the classes moved since the last accepted delivery (total variation distance),
    how much accuracy condensed rows cost, and how many of them repeat a source row; more of those may also stop it.
    """

    baseline: Annotated[StrictInt, Field(ge=1)] = 1
    drift: Share = 0.1
    accuracy_margin: Share = 0.1
    repeated_rows: Share = 0.1
    on_repeated_rows: Literal["warn", "stop"] = "warn"


def _address(source: object) -> object:
    return address_of(source) if isinstance(source, dict) else source


class TableSpec(_Settings):
    """One table of the catalogue.

    The name becomes part of paths. The source is a path, relative to the catalogue, or an address, or a mapping such as
    ``{"sqlite": {"file": "a.db", "table": "t"}}``, see :func:`c2tc_pipeline.sources.addresses.address_of`. Ratios are
    condensed sizes as shares of the training rows. ``missing`` are further spellings of missing values; a label of the
    kind ``classes`` may have many different numbers. ``fresh_within``, such as
    ``26h`` or ``8d``, is the time in which a new delivery is expected.

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
    missing: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    label_kind: Literal["auto", "classes"] = "auto"
    ratios: Annotated[tuple[Ratio, ...], Field(min_length=1)] = DEFAULT_RATIOS
    split: SplitSettings = SplitSettings()
    settings: CondenseSettings = CondenseSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    checks: CheckSettings = CheckSettings()
    fresh_within: Annotated[str, Field(pattern=r"\A[1-9][0-9]{0,5}[hd]\z")] | None = None

    @property
    def fresh_hours(self) -> int | None:
        """The hours within which a new delivery is expected, or None."""
        if self.fresh_within is None:
            return None
        return int(self.fresh_within[:-1]) * (24 if self.fresh_within[-1] == "d" else 1)

    @field_validator("ratios")
    @classmethod
    def _each_ratio_once(cls, ratios: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(ratios)) < len(ratios):
            raise ValueError("ratios must be unique")
        return ratios

    @model_validator(mode="after")
    def _label_has_no_role(self) -> Self:
        if self.label in self.roles:
            raise ValueError(f"the label {self.label!r} can't have a role; remove it from the roles")
        return self
