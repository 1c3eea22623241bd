"""The pages in a real browser: everything is drawn, nothing is fetched, nothing runs, nothing overflows."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from c2tc_pipeline.reports.exhibits import means_by_ratio
from c2tc_pipeline.reports.html import MAX_ROWS, PAPER_COLUMNS, render_report
from c2tc_pipeline.reports.leaderboard import render_leaderboard
from c2tc_pipeline.reports.overview import TableState, render_overview
from c2tc_pipeline.reports.picture import Picture
from c2tc_pipeline.reports.table_report import render_table_report
from c2tc_pipeline_tests.reports.stand_in import made_scores, stand_in
from c2tc_pipeline_tests.tools.browser import Page, open_page

HOSTILE = "<img src=x onerror=\"document.title='taken over'\"><script>document.title='taken over'</script>"
COUNTS = (60, 40, 30, 20, 10)
MOST_IN_AN_EMPTY_PICTURE = 50

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# The size of each picture, and how many of its pixels are in colour: paper, axes and letters are grey, marks are not.
PICTURES = """
Promise.all([...document.images].map(async image => {
  await image.decode();
  const box = image.getBoundingClientRect();
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [600, 400];
  const context = canvas.getContext('2d');
  context.drawImage(image, 0, 0, 600, 400);
  const points = context.getImageData(0, 0, 600, 400).data;
  let marked = 0;
  for (let i = 0; i < points.length; i += 4) {
    const channels = [points[i], points[i + 1], points[i + 2]];
    marked += Math.max(...channels) - Math.min(...channels) > 60;
  }
  return {alt: image.alt, width: box.width, height: box.height, marked};
}))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with open_page() as opened:
        yield opened


@pytest.fixture(scope="module")
def table_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page over two ratios."""
    tables = {0.001: stand_in(counts=(6, 5, 4, 3, 2), sampled=100), 0.01: stand_in(counts=COUNTS, sampled=100)}
    scores = {0.001: made_scores((6, 5, 4, 3, 2)), 0.01: made_scores(COUNTS, lift=0.1)}
    return written(tmp_path_factory.mktemp("report"), render_table_report("flights", tables, scores))


def written(folder: Path, text: str) -> str:
    (folder / "page.html").write_text(text, encoding="utf-8")
    return (folder / "page.html").as_uri()


def drawn(browser: Page) -> list[dict[str, Any]]:
    """Return the pictures that the browser drew, having checked that none is empty."""
    pictures: list[dict[str, Any]] = browser.evaluate(PICTURES)
    for picture in pictures:
        assert picture["width"] > 200, picture
        assert picture["height"] > 80, picture
        assert picture["marked"] > MOST_IN_AN_EMPTY_PICTURE, picture
    return pictures


def test_the_table_report_is_drawn_without_a_complaint_or_a_request(browser: Page, table_report: str) -> None:
    browser.look()
    browser.open(table_report)
    assert len(drawn(browser)) == 2 + 4 + 2 * (2 + 3 + 3 + 4)
    # The verdict on each ratio is the first thing below the title.
    assert browser.evaluate("document.querySelector('h1').nextElementSibling.nextElementSibling.className") == "verdict"
    assert browser.console_errors == []
    assert browser.requests == [table_report]
    for width, dark in ((1200, False), (390, True)):
        browser.look(width=width, dark=dark)
        browser.open(table_report)
        assert browser.evaluate(OVERFLOW) <= 0
        shade = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]")
        assert (int(shade) < 60) == dark
    # Folded numbers fit a phone as well.
    browser.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert browser.evaluate(OVERFLOW) <= 0
    # Links lead to their ratio.
    browser.evaluate("document.querySelector('nav a[href=\"#ratio-1\"]').click()")
    top = "document.getElementById('ratio-1').getBoundingClientRect().top"
    browser.wait_until(f"{top} >= 0 && {top} < 200")


def crowded_report() -> str:
    """Return a report of a hundred columns and fifty classes, all with long names in one piece."""
    classes = [f"class_{place}_" + "x" * 80 for place in range(50)]
    features = [f"column_{place}_" + "y" * 80 for place in range(100)]
    names: dict[str, Any] = {"features": features, "label_name": "label_" + "z" * 80, "table_name": "t" * 200}
    table = stand_in(classes=classes, class_rows=range(1_000, 1_050), counts=[2] * 50, sampled=50, **names)
    scores = made_scores([2] * 50, models=["model_" + "w" * 80])
    return render_table_report("t" * 200, {0.01: table}, {0.01: scores})


def tiny_report() -> str:
    """Return a report of a table of two rows, of which none was lost."""
    return render_report(stand_in(classes=["a", "b"], class_rows=[1, 1], counts=[1, 1], sampled=2))


@pytest.mark.parametrize("render", [crowded_report, tiny_report])
def test_pages_of_very_large_and_very_small_tables_fit_a_phone_and_a_desk(
    browser: Page, tmp_path: Path, render: Callable[[], str]
) -> None:
    url = written(tmp_path, render())
    for width in (1400, 390):
        browser.look(width=width)
        browser.open(url)
        browser.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        assert browser.evaluate(OVERFLOW) <= 0
    drawn(browser)
    # Nothing sticks out of its box but tables, which scroll.
    outside = (
        "[...document.querySelectorAll('main *:not(.scroll *)')].filter(e => e.getBoundingClientRect().right > 390)"
    )
    assert browser.evaluate(f"{outside}.map(e => e.outerHTML.slice(0, 80))") == []


def states(count: int) -> list[TableState]:
    """Return tables of which every hundredth failed and every fiftieth is late."""
    return [
        TableState(
            f"table_{place:04d}",
            "failed" if place % 100 == 7 else "late" if place % 50 == 3 else "fresh",
            age_seconds=60.0 * place,
            rows_in=10_000,
            rows_out=(10, 100),
            verdict="10 condensed rows stand for 10,000.",
            row_worth="> 20",
            kept=0.99 - place / 10_000,
            seconds=12.0,
            failure="Column 'age' lacks 3 values." if place % 100 == 7 else "",
            report=f"table_{place:04d}/report.html",
        )
        for place in range(count)
    ]


def test_the_overview_shows_a_thousand_tables_worst_first_and_filters_them(browser: Page, tmp_path: Path) -> None:
    url = written(tmp_path, render_overview(states(1_000)))
    shown = "[...document.querySelectorAll('tbody tr')].filter(row => row.checkVisibility())"
    names = f"{shown}.map(row => row.cells[0].innerText)"
    for width in (1400, 390):
        browser.look(width=width)
        browser.open(url)
        assert browser.evaluate(OVERFLOW) <= 0
    found = browser.evaluate(names)
    failed = [f"table_{place:04d}" for place in range(907, 0, -100)]
    assert found[:11] == [*failed[:10], "table_0953"]
    assert len(found) == 1_000

    def type_into_filter(text: str) -> None:
        browser.evaluate("document.querySelector('input').focus(); document.querySelector('input').select()")
        browser.call("Input.insertText", text=text)

    type_into_filter("AGE lacks table_01")
    assert browser.evaluate(names) == ["table_0107"]
    assert browser.evaluate("document.querySelector('output').innerText") == "1"
    browser.evaluate("document.querySelector('button.failed').click()")
    assert browser.evaluate(names) == failed
    browser.evaluate("document.querySelector('input').select()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Backspace", windowsVirtualKeyCode=8)
    assert len(browser.evaluate(names)) == 1_000
    assert browser.evaluate("document.querySelector('tbody a').getAttribute('href')") == "table_0907/report.html"
    assert browser.console_errors == []
    assert browser.requests == [url]


def test_hostile_states_do_nothing_and_only_the_overviews_own_script_runs(browser: Page, tmp_path: Path) -> None:
    fields: dict[str, Any] = dict.fromkeys(("verdict", "row_worth", "failure"), HOSTILE)
    rows = [
        TableState(HOSTILE, "failed", report=f"javascript:document.title='taken over'//{place}", **fields)
        for place in range(2)
    ]
    url = written(tmp_path, render_overview(rows))
    browser.look()
    browser.open(url)
    assert HOSTILE in browser.text
    assert browser.evaluate("document.querySelectorAll('a, img').length") == 0
    assert (browser.console_errors, browser.requests) == ([], [url])
    text = Path(url.removeprefix("file://")).read_text()
    browser.open(written(tmp_path, text.replace("</main>", f"{HOSTILE}</main>")))
    assert browser.evaluate("document.title") == "Overview of tables"
    assert len(browser.console_errors) >= 2
    with pytest.raises(ValueError, match="broken"):
        render_overview([TableState("people", "broken")])


def test_the_policy_of_a_report_stops_markup_that_slipped_through(
    browser: Page, table_report: str, tmp_path: Path
) -> None:
    # A picture without marks would be noticed.
    empty = Picture(lambda figure: figure.subplots().set_title("nothing in it"), height=300)
    slipped = f'{HOSTILE}<img alt="Axes." src="{empty.data_uri()}">'
    text = Path(table_report.removeprefix("file://")).read_text()
    browser.open(written(tmp_path, text.replace("</main>", f"{slipped}</main>")))
    assert browser.evaluate("document.title") == "Condensed table: flights"
    assert len(browser.console_errors) >= 2
    browser.evaluate("document.querySelector('img[src=x]').remove()")
    with pytest.raises(AssertionError, match="Axes"):
        drawn(browser)


def test_the_leaderboard_fits_a_wide_window(browser: Page, tmp_path: Path) -> None:
    means = means_by_ratio({0.001: made_scores(COUNTS), 0.01: made_scores(COUNTS, lift=0.1)})
    url = written(
        tmp_path,
        render_leaderboard(means.assign(table=HOSTILE[:30], rows_in=336_776, rows_out=160, worth=3.2, bound="")),
    )
    browser.look(width=1600)
    browser.open(url)
    assert browser.evaluate("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.scroll'))") == 0
    assert browser.console_errors == []


def pages_printed(browser: Page) -> int:
    printed = base64.b64decode(browser.call("Page.printToPDF")["data"])
    return len(re.findall(rb"/Type /Page\b", printed))


def test_a_printed_report_of_many_classes_has_few_pages_and_says_what_is_left_out(
    browser: Page, tmp_path: Path
) -> None:
    classes = [f"class {place}" for place in range(200)]
    table = stand_in(classes=classes, class_rows=[100] * 200, counts=[2] * 200, sampled=50)
    scores = made_scores([2] * 200, seeds=1)
    browser.look()
    browser.open(written(tmp_path, render_table_report("flights", {0.01: table}, {0.01: scores})))
    browser.call("Emulation.setEmulatedMedia", media="print")
    on_paper = browser.text
    browser.call("Emulation.setEmulatedMedia", media="")
    # Of two models, each trained on three sets, and of the classes.
    assert "Not printed: 1,160 more rows." in on_paper
    assert "Not printed: 160 more rows." in on_paper
    assert "class 39" in on_paper
    assert pages_printed(browser) < 15


@pytest.mark.parametrize("columns", [4, 60])
def test_a_printed_report_has_all_scores_and_a_readable_part_of_the_condensed_rows(
    browser: Page, tmp_path: Path, columns: int
) -> None:
    table = stand_in(counts=COUNTS, features=[f"column {place}" for place in range(columns)], sampled=100)
    browser.look()
    browser.open(written(tmp_path, render_table_report("flights", {0.01: table}, {0.01: made_scores(COUNTS)})))
    on_screen = browser.text
    browser.call("Emulation.setEmulatedMedia", media="print")
    on_paper = browser.text
    rows = "[...document.querySelectorAll('.rows tr')].filter(row => row.checkVisibility())"
    cells = browser.evaluate(f"{rows}.map(row => [...row.cells].filter(cell => cell.checkVisibility()).length)")
    lines = browser.evaluate(f"{rows}.map(row => row.getBoundingClientRect().height / 16)")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert "Scores by class" in on_paper
    assert "Scores by class" not in on_screen
    assert cells == [min(columns + 2, PAPER_COLUMNS)] * (min(MAX_ROWS, 2 * len(COUNTS)) + 1)
    assert max(lines) < 6
    more_columns = f" and {columns + 2 - PAPER_COLUMNS} more columns" if columns + 2 > PAPER_COLUMNS else ""
    assert f"Not printed: {sum(COUNTS) - 2 * len(COUNTS)} more rows{more_columns}." in on_paper
    assert "Not printed" not in on_screen
    assert pages_printed(browser) < 10
