"""Imports between the rooms of the package, installed files and public names."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import c2tc_pipeline
from c2tc_pipeline.pipeline.jobs import PRELOADED

PACKAGE = Path(c2tc_pipeline.__file__).parent
# A room imports only rooms before it; nothing imports the bench.
ROOMS = (
    *("common", "storage", "sources", "tables", "encoding", "clustering", "allocation", "condensation"),
    *("evaluation", "reports", "pipeline", "cli", "bench"),
)
# ``CondensedTable.save(report=True)`` renders the report, within the call.
EXCEPTIONS = {("condensation/table.py", "reports")}
DAGSTER_ROOMS = ("pipeline", "definitions")


def module_names(without: tuple[str, ...] = ()) -> list[str]:
    """Return the dotted names of all modules, but for those of some rooms."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[1] not in without and parts[-1] != "__main__":
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def imported_rooms(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, room) of every import of this package, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == PACKAGE.name and len(parts) > 1 and parts[1] in ROOMS:
                yield node.lineno, parts[1]  # type: ignore[attr-defined]


def run_python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=PACKAGE.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("room", [room for room in ROOMS if (PACKAGE / room).is_dir()])
def test_a_room_imports_only_rooms_before_it(room: str) -> None:
    allowed = ROOMS[: ROOMS.index(room) + 1]
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {other}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, other in imported_rooms(path)
        if other not in allowed and (path.relative_to(PACKAGE).as_posix(), other) not in EXCEPTIONS
    ]
    assert wrong == []


def test_the_scan_sees_imports() -> None:
    seen = {room for path in (PACKAGE / "condensation").glob("*.py") for _, room in imported_rooms(path)}
    assert {"storage", "tables", "encoding", "clustering", "allocation", "condensation"} <= seen


IMPORTS = """
import importlib, socket, sys, threading
asked = []
def refuse(*arguments, **options):
    asked.append(arguments)
    raise OSError("sockets are blocked")
for name in ("connect", "connect_ex", "bind", "sendto"):
    setattr(socket.socket, name, refuse)
socket.getaddrinfo = socket.gethostbyname = refuse
for name in sys.argv[1:]:
    if name == "dagster?":
        print([name for name in sys.modules if name.partition('.')[0].startswith('dagster')])
    elif name == "threads?":
        print(threading.active_count())
    else:
        importlib.import_module(name)
print(asked)
"""


def test_imports_open_no_connection_the_core_none_of_dagster_and_preloaded_modules_no_thread() -> None:
    """Dagster would silently skip a preloaded module that is gone; a thread would be missing in a forked step."""
    core, every = module_names(without=DAGSTER_ROOMS), module_names()
    assert len(core) > 50
    assert {"c2tc_pipeline.definitions", "c2tc_pipeline.sources.openml", "c2tc_pipeline.cli.main"} <= {*every}
    printed = run_python(IMPORTS, *core, "dagster?", *PRELOADED, "threads?", *every)
    assert printed.splitlines() == ["[]", "1", "[]"]


def test_help_answers_without_heavy_imports() -> None:
    code = (
        "import sys\n"
        "from c2tc_pipeline.cli.main import main\n"
        "for command in sys.argv[1:]:\n"
        "    main(command.split(), prog_name='c2tc', standalone_mode=False)\n"
        "heavy = ('torch', 'sklearn', 'pandas', 'numpy', 'matplotlib', 'dagster')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    commands = ["--help", "--version", *(f"{name} --help" for name in ("condense", "run", "ui", "tables"))]
    printed = run_python(code, *commands).strip()
    assert printed.count("Usage: c2tc") == len(commands) - 1
    assert printed.splitlines()[-1] == "[]"


MISTAKES = """
import json, sys
from c2tc_pipeline import condense
from c2tc_pipeline.cli.main import main
from c2tc_pipeline.common.errors import InputError
source, commands = sys.argv[1], json.loads(sys.argv[2])
for command in commands:
    try:
        main(command.split(), prog_name='c2tc')
    except SystemExit as end:
        print(end.code)
for mistake in [{'label': 'incom'}, {'ratio': 2}, {'rows': 0}, {'roles': {'age': 'colour'}}, {'allocation': 'fair'},
                {'strings': 'guess'}, {'gamma': 3}, {'random_state': -1}, {'data': 'none.csv'}, {'data': 7},
                {'rows': 4}]:
    try:
        condense(**{'data': source, 'label': 'income', **mistake})
    except InputError:
        print(2)
print([name for name in ('torch', 'sklearn', 'dagster', 'matplotlib') if name in sys.modules])
"""


def test_mistakes_are_reported_before_the_heavy_imports(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("age,income\n1,a\n2,b\n3,a\n", encoding="utf-8")
    wrong = {
        "one_class": "x,y\n1,a\n2,a\n",
        "no_label": "x,y\n1,\n2,\n",
        "header": "x,y\n",
        "label_only": "y\na\nb\n",
        "ragged": "x,y\n1,a\n2,b,c\n",
        "latin": "x,y\n1,a\n2,caf\u00e9\n",
        "continuous": "x,y\n" + "".join(f"{row % 7},{row / 3}\n" for row in range(300)),
    }
    for name, content in wrong.items():
        (tmp_path / f"{name}.csv").write_text(content, encoding="latin-1")
    catalogue = tmp_path / "catalog.yaml"
    catalogue.write_text("tables: {people: {source: people.csv, label: incom}}", encoding="utf-8")
    table, named = f"condense {people} --out small", f"condense --catalogue {catalogue} --out small"
    commands = [
        "condense none.csv --label income --out small",
        f"{table} --label incom",
        *(f"{table} --label income {option}" for option in ("--ratio 2", "--rows 0", "--gamma 3", "--role age=colour")),
        *(f"{table} --label income {option}" for option in ("--rows 1", "--rows 100000")),
        *(f"condense {tmp_path / name}.csv --label y --out small" for name in wrong),
        "bench nosuch",
        *([f"{table} --label income --device cuda"] if version("torch").endswith("+cpu") else []),
        *(f"{table} --label income {option}" for option in ("--role aeg=code", "--engine spark", f"--out {people}")),
        f"{table} --label income --representative medoid --min-rows-per-condensed-row 3",
        *(f"{named} --table {name}" for name in ("people", "persons")),
        f"run --catalogue {catalogue} --table persons",
        f"run --catalogue {catalogue} --ratio 0.5",
        *(
            f"{command} {folder}"
            for command in ("expand --out o.parquet", "forget --ids i")
            for folder in ("no", "data")
        ),
        f"tables {catalogue}",
    ]
    printed = run_python(MISTAKES, str(people), json.dumps(commands)).splitlines()
    assert printed[-1] == "[]"
    assert [line for line in printed if line.isdigit()] == ["2"] * (len(commands) + 11)


def test_public_names() -> None:
    assert c2tc_pipeline.__all__ == [
        "CondensedTable",
        "Condenser",
        "HybridEncoder",
        "condense",
        "evaluate",
        "row_worth",
    ]
    assert all(callable(getattr(c2tc_pipeline, name)) for name in c2tc_pipeline.__all__)
    with pytest.raises(AttributeError, match="no attribute 'condence'"):
        c2tc_pipeline.condence  # noqa: B018
