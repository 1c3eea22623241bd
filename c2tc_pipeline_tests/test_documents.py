"""The Python code of the documents runs, and does what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import c2tc_pipeline

ROOT = Path(__file__).parents[1]


def run_python_of(document: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the Python blocks of a document one after the other, in a folder with the data, and return their code."""
    tokens = MarkdownIt().parse((ROOT / document).read_text(encoding="utf-8"))
    code = "\n".join(token.content for token in tokens if token.type == "fence" and token.info == "python")
    assert code
    (folder / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(folder)
    exec(compile(code, document, "exec"), {"__name__": "document"})
    return code


@pytest.mark.slow
def test_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_python_of("README.md", tmp_path, monkeypatch)
    drawn, sample = map(float, capsys.readouterr().out.split())
    claimed = re.findall(r"# (0\.\d+)$", code, re.MULTILINE)
    assert [drawn, sample] == pytest.approx([float(each) for each in claimed], abs=0.02)
    assert drawn > sample + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("document", ["docs/condense.md", "docs/judge.md"])
def test_guide(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_python_of(document, tmp_path, monkeypatch)


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\.\. auto(?:class|function):: (\w+)$", text, re.MULTILINE)} == {*c2tc_pipeline.__all__}
