"""Dependencies are pinned, documented and audited."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from c2tc_pipeline_tests.tools.audit import CONSTRAINTS, audit
from c2tc_pipeline_tests.tools.serving import serving

ROOT = CONSTRAINTS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS: dict[str, str] = {
    canonicalize_name(name): version
    for name, version in re.findall(r"^([^#=\s]+)==(\S+)$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
}
INSTALLERS = {"pip", "setuptools"}


def own_requirements() -> list[Requirement]:
    """Return the requirements of pyproject.toml with all extras."""
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    found = [Requirement(line) for line in lines]
    return [each for each in found if canonicalize_name(each.name) != canonicalize_name(PROJECT["name"])]


def all_installed() -> dict[str, str]:
    """Return name and version of every installed package that is required directly or indirectly."""
    waiting = own_requirements()
    found: dict[str, str] = {}
    seen = set()
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        if (name, *sorted(each.extras)) in seen:
            continue
        seen.add((name, *sorted(each.extras)))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[name] = package.version
        for line in package.requires or []:
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *each.extras)):
                waiting.append(needed)
    return found


@pytest.mark.parametrize("needed", own_requirements(), ids=str)
def test_pins_fit_the_requirements(needed: Requirement) -> None:
    assert needed.specifier.contains(PINS[canonicalize_name(needed.name)])


def imported_modules(folder: Path) -> set[str]:
    """Return the names of the packages that the modules below a folder import, anywhere in them."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names)


def test_what_the_package_imports_is_required_by_it() -> None:
    declared = {canonicalize_name(each.name) for each in own_requirements()}
    providers = metadata.packages_distributions()
    undeclared = {
        name
        for name in imported_modules(ROOT / "c2tc_pipeline") - {"c2tc_pipeline"}
        if not declared & {canonicalize_name(each) for each in providers.get(name, [name])}
    }
    assert undeclared == set()


def test_installed_packages_are_pinned() -> None:
    installed = all_installed()
    assert len(installed) > 100
    # Builds of torch have a local version after a plus.
    wrong = {
        name: (version, PINS.get(name))
        for name, version in installed.items()
        if name not in INSTALLERS and version.partition("+")[0] != PINS.get(name)
    }
    assert wrong == {}


def test_every_extra_is_documented() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    first = {
        canonicalize_name(name.strip())
        for cell in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
        for name in re.sub(r"\([^)]*\)", "", cell).split(",")
    }
    assert {canonicalize_name(each.name) for each in own_requirements()} <= first


@contextmanager
def database(vulnerable: str) -> Iterator[str]:
    """Serve an OSV database with one vulnerable package."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = canonicalize_name(asked["package"]["name"])
            known = [{"id": "PYSEC-2026-1", "affected": [], "summary": "made up"}] if name == vulnerable else []
            body = json.dumps({"vulns": known} if known else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}/v1/query"


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    path = tmp_path / "pins.txt"
    path.write_text("numpy==2.4.6\nclick==8.5.1\n")
    return path


def test_audit_names_a_vulnerability(pins: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with database("click") as address:
        assert audit(address, pins) == 1
    printed = capfd.readouterr().out
    assert "PYSEC-2026-1" in printed
    assert "numpy" not in printed


def test_audit_without_a_database(pins: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with database("click") as address:
        pass  # its port is closed by now
    assert audit(address, pins) == 0
    printed = capfd.readouterr()
    assert len(printed.out.splitlines()) == 1
    assert printed.err == ""
