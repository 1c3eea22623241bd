"""The catalogue: a YAML file that describes tables by name.

    tables:
      adult:
        source: adult.csv
        label: income

A wrong catalogue is refused with the file, the table, the field and the reason before anything runs. The fields are in
:mod:`c2tc_pipeline.tables.spec`. YAML is read as plain data of at most 1 MiB, each key once, no aliases.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.sources.addresses import open_source, resolve_address
from c2tc_pipeline.tables.spec import TableSpec

# Name of the catalogue that comes with the package, unless a file has it.
PAPER = "paper"

_FIELDS = tuple(name for name in TableSpec.model_fields if name != "name")
MAX_BYTES = 1 << 20


class Catalogue(Mapping[str, TableSpec]):
    """Table descriptions by name, in the order of the file."""

    def __init__(self, path: Path, tables: Mapping[str, TableSpec]) -> None:
        self.path = path
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> TableSpec:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def table(self, name: str) -> TableSpec:
        """Return a table's description; refuse an unknown name."""
        if name not in self._tables:
            raise InputError(f"There is no table {name!r} in the catalogue {self.path}; {closest(name, self)}.")
        return self._tables[name]

    def resolve_source(self, spec: TableSpec) -> str:
        """Return a table's address; a relative path starts in the catalogue's folder."""
        return resolve_address(spec.source, self.path.parent)


@dataclass(frozen=True)
class TableReport:
    """Result of opening a catalogue's table: the problem in one sentence, if any, and its size where it is known."""

    name: str
    problem: str | None
    rows: int | None
    columns: int | None


def load_catalogue(path: str | Path) -> Catalogue:
    """Read and check a catalogue."""
    path = Path(path)
    if str(path) == PAPER and not path.exists():
        path = Path(__file__).with_name("paper.yaml")
    if not path.exists():
        raise InputError(f"There is no catalogue {str(path)!r}; check its path.")
    content = load_yaml(path)
    if not isinstance(content, dict) or set(content) != {"tables"} or not isinstance(content["tables"], dict):
        raise InputError(f"The catalogue {path} must have one key, 'tables', with a description under each name.")
    problems: list[str] = []
    tables = {}
    for name, fields in content["tables"].items():
        if not isinstance(fields, dict):
            problems.append(
                f"The catalogue {path} has no fields under table {name!r}; give it at least source and label"
            )
            continue
        try:
            tables[name] = TableSpec.model_validate({**fields, "name": name})
        except ValidationError as error:
            # A misspelt field is a missing one, too.
            found = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
            problems += [_sentence(path, str(name), problem) for problem in found]
    if problems:
        more = f", and {len(problems) - 1} more problems" if len(problems) > 2 else ", and 1 more problem"
        raise InputError(problems[0] + (more if len(problems) > 1 else "") + ".")
    if not tables:
        raise InputError(f"The catalogue {path} describes no table; add one under 'tables'.")
    return Catalogue(path, tables)


def chosen_cells(catalogue: Catalogue, table: str | None, ratio: float | None) -> dict[str, tuple[float, ...]]:
    """Return the ratios to make of each table; None means all tables, or all ratios that each lists."""
    names = list(catalogue) if table is None else [catalogue.table(table).name]
    if not names:
        raise InputError(f"There are no tables in the catalogue {catalogue.path}; describe one there.")
    for name in names:
        known = catalogue[name].ratios
        if ratio is not None and ratio not in known:
            listed = ", ".join(f"{each:g}" for each in known)
            raise InputError(
                f"Table {name!r} is not condensed to the ratio {ratio:g}; choose one of its ratios ({listed}), or add "
                f"it to the catalogue {catalogue.path}."
            )
    return {name: tuple(catalogue[name].ratios) if ratio is None else (ratio,) for name in names}


def validate_catalogue(catalogue: Catalogue) -> list[TableReport]:
    """Open each table's header and compare it with its description, without reading the table."""
    return [_report(catalogue, spec) for spec in catalogue.values()]


def _report(catalogue: Catalogue, spec: TableSpec) -> TableReport:
    try:
        header = open_source(catalogue.resolve_source(spec)).header()
    except (InputError, OSError) as error:
        return TableReport(spec.name, str(error), rows=None, columns=None)
    problem = None
    if spec.label not in header.columns:
        problem = f"There is no label column {spec.label!r} in its source; {closest(spec.label, header.columns)}."
    else:
        for column in spec.roles:
            if column not in header.columns:
                hint = closest(column, header.columns)
                problem = f"There is no column {column!r}, which is given a role, in its source; {hint}."
                break
    return TableReport(spec.name, problem, rows=header.rows, columns=len(header.columns))


def _sentence(path: Path, table: str, problem: Any) -> str:
    where = [str(part) for part in problem["loc"]]
    # pydantic adds the branch of a union, which is not part of the file.
    where = [part for part in where if not part.startswith(("constrained-", "literal[", "float"))]
    place = f"The catalogue {path}, table {table!r}"
    place += f", field {'.'.join(where)!r}" if where else ""
    return f"{place}: {_reason(problem, where)}"


def _reason(problem: Any, where: list[str]) -> str:
    kind = problem["type"]
    if where == ["name"]:
        return (
            "the name may hold lower-case letters, digits and underscores, at most 64 and beginning with a "
            "letter; rename the table"
        )
    if kind == "missing":
        return "it is missing; add it"
    if kind == "extra_forbidden":
        known = closest(where[-1], _FIELDS) if len(where) == 1 else "check its spelling"
        return f"there is no such setting; {known}"
    if where[-1:] == ["[key]"]:
        return "a column name must be text; put it in quotation marks"
    message = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    message = message[:1].lower() + message[1:]
    if kind == "string_type":
        return f"{message}, not {problem['input']!r}; put it in quotation marks"
    return message if kind == "value_error" else f"it {message}, not {_shortened(problem['input'])}"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Refusal(yaml.MarkedYAMLError):
    """Valid YAML that is not allowed here."""


def _wrong_tag(node: yaml.Node) -> _Refusal:
    return _Refusal(problem=f"a value is not a valid {node.tag.rpartition(':')[2]}", problem_mark=node.start_mark)


class _StrictLoader(yaml.SafeLoader):
    """The safe loader without aliases and duplicate keys."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        # An alias can stand for a thousand others; no description of a table needs one.
        if self.check_event(yaml.AliasEvent):
            raise _Refusal(problem="aliases (*) are not allowed", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise _wrong_tag(node)
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise _Refusal(problem="a key must be text", problem_mark=key_node.start_mark)
            if key in seen:
                raise _Refusal(problem=f"the key {key!r} occurs twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # A tag can precede any text, and the parser does not check that it fits: "!!bool maybe".
            raise _wrong_tag(node) from None


# A Dagster run loads its definitions, and so the catalogue, five times; parsing takes half a millisecond per table.
@lru_cache(maxsize=2)
def _parsed(text: str) -> Any:
    return yaml.load(text, Loader=_StrictLoader)


def load_yaml(path: Path) -> Any:
    """Read a YAML file of dicts, lists and scalars."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InputError(f"The file {path} is larger than 1 MiB; divide it into smaller ones.")
        return copy.deepcopy(_parsed(content.decode("utf-8-sig")))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; check the path.") from None
    except OSError:
        raise InputError(f"The file {path} can't be read; check that it is a file and its permissions.") from None
    except UnicodeDecodeError:
        raise InputError(f"The file {path} is not UTF-8; save it as UTF-8.") from None
    except RecursionError:
        raise InputError(f"The file {path} is nested too deeply; flatten it.") from None
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"The file {path} is not a valid description{line}: {error.problem}; correct it.") from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The file {path} holds characters or values that YAML does not allow; correct it.") from None
