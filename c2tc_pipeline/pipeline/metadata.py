"""Metadata of assets for the dashboard: numbers that it plots over time, schemas, lineage and pictures.

Numbers have entries of their own, so that the dashboard can plot them; values of several parts are a table, JSON or
Markdown. Pictures need matplotlib, which is imported when one is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.pipeline.formats import AllocationPlan, CondensedTable, EncodedRows, TableEncoder
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.roles import ColumnRole
from c2tc_pipeline.tables.schema import SchemaFailure
from c2tc_pipeline.tables.split import SIDES
from c2tc_pipeline.tables.table import Table

if TYPE_CHECKING:
    from c2tc_pipeline.reports.exhibits import Exhibit, Panels
    from c2tc_pipeline.reports.overview import TableState

Metadata = dict[str, Any]

CLASS_SHARES = "class_shares"
# Of the model in the verdict: the share of the whole table's accuracy, and the worth of a condensed row.
ACCURACY_KEPT, WORTH = "share_of_whole_accuracy", "worth_of_a_row"
# A label with more classes than this is summed up by its largest ones.
_CLASSES_SHOWN = 200
_ROWS_SHOWN = 10
_COLUMNS_SHOWN = 500
_DIGITS = 4


def rounded(value: Any) -> Any:
    """Return a float with four significant digits, and anything else as it is."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def of_blocks(blocks: Blocks, label: str) -> Metadata:
    """Return rows, columns, schema and class shares of a table, from one pass over it."""
    rows, missing = 0, pd.Series(0, index=blocks.columns)
    dtypes: dict[str, str] = {}
    counts, unlabelled = pd.Series(dtype=np.int64), 0
    for frame in blocks.frames():
        rows += len(frame)
        missing = missing.add(frame.isna().sum())
        dtypes |= {str(name): str(dtype) for name, dtype in frame.dtypes.items()}
        if label in frame.columns:
            counts = counts.add(frame[label].value_counts(), fill_value=0)
            unlabelled += int(frame[label].isna().sum())
    columns = [
        dg.TableColumn(name, dtypes[name], constraints=dg.TableColumnConstraints(nullable=bool(missing[name])))
        for name in blocks.columns[:_COLUMNS_SHOWN]
    ]
    found: Metadata = {
        "dagster/row_count": rows,
        "dagster/column_schema": dg.TableSchema(columns),
        "columns": len(blocks.columns),
        "cells_missing": int(missing.sum()),
    }
    if label in blocks.columns:
        # The largest classes first.
        shares = (counts.sort_values(ascending=False, kind="stable") / max(counts.sum(), 1)).head(_CLASSES_SHOWN)
        listed = {str(name): round(float(share), 9) for name, share in shares.items()}
        found |= {"classes": len(counts), "rows_without_label": unlabelled}
        found[CLASS_SHARES] = dg.MetadataValue.json(listed)
    return found


def of_sides(table: Table) -> Metadata:
    """Return the number of rows on each side of the split."""
    return {f"{side}_rows": len(table.positions(side)) for side in SIDES}


def of_notices(notices: Sequence[Notice]) -> Metadata:
    """Return the notices about a table."""
    return {"notices": len(notices), "notice_texts": dg.MetadataValue.json([str(notice) for notice in notices])}


def roles_table(roles: Mapping[str, ColumnRole]) -> dg.MetadataValue[Any]:
    """Return the role of each column, and the reason for it, as a table."""
    names = ("column", "role", "why", "distinct", "missing")
    shown = [(name, role.role.value, role.reason, role.distinct, role.missing) for name, role in roles.items()]
    return _table([dict(zip(names, row, strict=True)) for row in shown[:_COLUMNS_SHOWN]])


def same_columns(columns: Sequence[str], parent: TableStep) -> Metadata:
    """Return the lineage of columns that have the same names in a parent."""
    return _lineage({name: [(parent, name)] for name in columns[:_COLUMNS_SHOWN]})


def of_encoder(encoder: TableEncoder) -> Metadata:
    """Return the encoding of each column, and whether the weights were cached."""
    outputs = encoder.get_feature_names_out()
    losses = getattr(encoder, "losses_", None)
    hit = getattr(encoder, "cache_hit_", None)
    found: Metadata = {
        "columns_in": len(encoder.columns_),
        "columns_encoded": len(outputs),
        "encodings": _table([{"column": name, "encoding": encoder.encoding_of(name)} for name in encoder.columns_]),
        **of_notices(getattr(encoder, "notices_", [])),
    }
    if hit is not None:
        found["cache_hit"] = bool(hit)
    if losses is not None and len(losses):
        found["autoencoder_loss"] = float(losses[-1])
    return found


def of_encoded(encoded: EncodedRows, encoder: TableEncoder, parent: TableStep) -> Metadata:
    """Return size, schema and lineage of the encoded rows."""
    columns = [dg.TableColumn(name, "float32") for name in encoded.names[:_COLUMNS_SHOWN]]
    weights = (
        {}
        if encoded.weights is None
        else {
            "column_power": encoded.weights.power,
            "column_importance": dg.MetadataValue.json(encoded.weights.importance),
        }
    )
    return {
        **{name: value for name, value in weights.items() if value is not None},
        "dagster/row_count": len(encoded.X),
        "dagster/column_schema": dg.TableSchema(columns),
        "columns_encoded": encoded.X.shape[1],
        "megabytes": round(encoded.X.nbytes / 1e6, 3),
        "validation_rows": 0 if encoded.validation is None else len(encoded.validation[0]),
        **_lineage(
            {
                name: [(parent, column) for column in columns]
                for name, columns in list(encoder.sources().items())[:_COLUMNS_SHOWN]
            }
        ),
    }


def of_plan(plan: AllocationPlan, encoded: EncodedRows) -> Metadata:
    """Return the allocation, and the loss curves behind it."""
    from c2tc_pipeline.reports.exhibits import curves_exhibit, trace_exhibit

    allocation = plan.allocation
    curves = curves_exhibit(encoded.classes, encoded.class_rows, plan.measured, allocation)
    exhibits: dict[str, Exhibit] = {"loss_curves": curves}
    if len(allocation.trace) > 1:
        exhibits["search"] = trace_exhibit(allocation)
    return {
        "rows_out": int(allocation.counts.sum()),
        "method": allocation.method,
        "gamma": allocation.gamma,
        "planned_objective": allocation.objective,
        **({} if allocation.bound is None else {"planned_bound": allocation.bound}),
        "kmeans_runs": allocation.evaluations + plan.gamma_trials,
        "cache_hit": plan.curves_cached,
        "allocation": _table(
            [
                {"class": name, "rows": rows, "condensed_rows": int(count)}
                for name, rows, count in zip(encoded.classes, encoded.class_rows, allocation.counts, strict=True)
            ][:_CLASSES_SHOWN]
        ),
        **_pictures(exhibits),
    }


def of_condensed(table: CondensedTable, parent: TableStep) -> Metadata:
    """Return sizes, objective, bound and pictures of a condensed table, and its first rows."""
    from c2tc_pipeline.reports.exhibits import projection_exhibit, shares_exhibit

    summary, counts = table.summary, [int(count) for count in table.allocation.counts]
    columns = [dg.TableColumn(str(name), str(dtype)) for name, dtype in table.original_rows.dtypes.items()][
        :_COLUMNS_SHOWN
    ]
    found: Metadata = {
        "dagster/row_count": len(table),
        "dagster/column_schema": dg.TableSchema(columns),
        "rows_in": summary["rows_in"],
        "rows_out": summary["rows_out"],
        "reached_ratio": summary["ratio"],
        "objective": summary["objective"],
        "singletons": summary["singletons"],
        "repeated_rows": summary["repeated_rows"]["total"],
        "repeated_rows_by_reason": dg.MetadataValue.json(summary["repeated_rows"]),
        "seconds_by_stage": dg.MetadataValue.json({name: round(s, 3) for name, s in summary["seconds"].items()}),
        "rows_shown": dg.MetadataValue.md(_rows_markdown(table)),
        **of_notices(table.notices),
        **same_columns([str(name) for name in table.original_rows.columns], parent),
        **_pictures(
            {
                "class_shares_picture": shares_exhibit(table.classes, table.class_rows, counts),
                "projection": projection_exhibit(table.classes, table.class_rows, table.projection),
            }
        ),
    }
    if summary["bound"] is not None:
        found |= {"bound": summary["bound"], "gap": summary["gap"]}
    return found


def of_training_rows(rows: pd.DataFrame, table: CondensedTable, parent: TableStep) -> Metadata:
    """Return size and schema of rows drawn from a condensed table, and how many rows each of these gave."""
    columns = [dg.TableColumn(str(name), str(dtype)) for name, dtype in rows.dtypes.items()][:_COLUMNS_SHOWN]
    return {
        "dagster/row_count": len(rows),
        "dagster/column_schema": dg.TableSchema(columns),
        "rows_out": len(table),
        "rows_per_condensed_row": round(len(rows) / len(table), 1),
        **same_columns([str(name) for name in table.original_rows.columns], parent),
    }


def of_scores(scores: pd.DataFrame) -> Metadata:
    """Return the verdict, the worth of a condensed row, and the scores of each model and training set."""
    from c2tc_pipeline.evaluation.row_worth import mean_scores, row_worth
    from c2tc_pipeline.evaluation.scores import TRAINING_SETS
    from c2tc_pipeline.reports.exhibits import TITLES, worth_exhibits
    from c2tc_pipeline.reports.verdict import headline, verdict, weak_references, worth_number

    means, worth = mean_scores(scores), row_worth(scores)
    best = headline(means, worth)
    found: Metadata = {
        "verdict": verdict(scores),
        **({ACCURACY_KEPT: best.kept} if best and best.kept is not None else {}),
        **({WORTH: worth_number(best.worth)} if best and best.worth else {}),
        "cache_hit": bool(scores["cache_hit"].all()),
        "cache_hits": int(scores["cache_hit"].sum()),
        **({"weak_references": " ".join(weak)} if (weak := weak_references(means)) else {}),
    }
    for row in worth.to_dict("records"):
        found[f"{_scored_name(row)}_row_worth_by_{row['metric']}"] = float(row["worth"])
    for row in means[means["training_set"].isin(TRAINING_SETS)].to_dict(orient="records"):
        for metric in TITLES:
            if not np.isnan(row[metric]):
                found[f"{_scored_name(row)}_{row['training_set']}_{metric}"] = float(row[metric])
    found |= _pictures(worth_exhibits(means, worth))
    found["scores"] = _table([{str(name): value for name, value in row.items()} for row in means.to_dict("records")])
    return found


def _scored_name(row: Mapping[Any, Any]) -> str:
    """Return the name of a model in metadata; original columns are named, encoded ones are not."""
    return row["model"] if row["columns"] == "encoded" else f"{row['model']}_{row['columns']}"


def of_leaderboard(board: pd.DataFrame) -> Metadata:
    """Return the leaderboard itself."""
    from c2tc_pipeline.reports.leaderboard import render_leaderboard_markdown

    return {
        "dagster/row_count": len(board),
        "tables": int(board["table"].nunique()) if len(board) else 0,
        "leaderboard": dg.MetadataValue.md(render_leaderboard_markdown(board) if len(board) else "No scores yet."),
    }


def of_overview(states: Sequence[TableState]) -> Metadata:
    """Return the number of tables, and of those in each state."""
    from c2tc_pipeline.reports.overview import STATES

    return {"tables": len(states), **{name: sum(each.state == name for each in states) for name in STATES}}


def of_report(page: str, tables: Mapping[float, CondensedTable], scores: Mapping[float, pd.DataFrame]) -> Metadata:
    """Return the size of a page, and the picture of scores over all ratios."""
    from c2tc_pipeline.reports.exhibits import TITLES, means_by_ratio, rows_panels

    means = means_by_ratio(scores)
    exhibits = {f"{metric}_by_ratio": rows_panels(means, metric) for metric in TITLES} if len(means) else {}
    return {"ratios": len(tables), "kilobytes": round(len(page.encode()) / 1e3, 1), **_pictures(exhibits)}


def of_failures(failures: Sequence[SchemaFailure]) -> Metadata:
    """Return what is wrong with a table: column, check, count and first cases."""
    rows = [
        {"column": each.column, "check": each.check, "count": each.count, "first_cases": ", ".join(each.first_cases)}
        for each in failures[:_COLUMNS_SHOWN]
    ]
    return {"failures": len(failures), **({"what_failed": _table(rows)} if rows else {})}


def _pictures(exhibits: Mapping[str, Exhibit | Panels]) -> Metadata:
    return {name: dg.MetadataValue.md(exhibit.markdown()) for name, exhibit in exhibits.items()}


def _rows_markdown(table: CondensedTable) -> str:
    """Return the condensed rows that stand for most source rows, in the columns of the source."""
    from c2tc_pipeline.reports.markdown import Column, markdown_table
    from c2tc_pipeline.reports.wording import cell

    heaviest = np.argsort(-table.weight.to_numpy(), kind="stable")[:_ROWS_SHOWN]
    rows = table.original_rows.iloc[heaviest]
    columns = [Column("source rows", True), *(Column(str(name)) for name in rows.columns)]
    lines = [
        [f"{weight:,}", *(cell(value) for value in row)]
        for weight, row in zip(table.weight.iloc[heaviest], rows.itertuples(index=False), strict=True)
    ]
    return markdown_table(columns, lines)


def _table(records: Sequence[Mapping[str, Any]]) -> dg.MetadataValue[Any]:
    if not records:
        return dg.MetadataValue.json([])
    types = {str: "string", bool: "bool", int: "int", float: "float"}
    plain = [{name: _plain(value) for name, value in record.items()} for record in records]
    columns = [dg.TableColumn(name, types[type(value)]) for name, value in plain[0].items()]
    return dg.MetadataValue.table([dg.TableRecord(record) for record in plain], dg.TableSchema(columns))


def _plain(value: Any) -> str | int | float | bool:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | bool) else str(value)


def _lineage(behind: Mapping[str, Sequence[tuple[TableStep, str]]]) -> Metadata:
    deps = {
        name: [dg.TableColumnDep(parent.key, column) for parent, column in columns] for name, columns in behind.items()
    }
    return {"dagster/column_lineage": dg.TableColumnLineage(deps)}
