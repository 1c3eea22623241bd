"""The frame of every page: it holds all that it shows, runs no script and loads nothing."""

from __future__ import annotations

from c2tc_pipeline.reports.markup import Markup, element, escaped
from c2tc_pipeline.reports.style_sheet import STYLE_SHEET

# Even if a name slipped through unescaped, the browser would neither run nor fetch anything.
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(kind: str, name: str, *sections: Markup) -> str:
    """Return a complete HTML page.

    Parameters
    ----------
    kind : str
        What sort of page it is; the start of its title.
    name : str
        What it is about; the rest of its title, empty when there is nothing to tell apart.
    *sections : Markup
        What it says.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> "<title>Condensed table: a&lt;b</title>" in page("Condensed table", "a<b")
    True
    """
    title = [Markup(f"{escaped(kind)}: "), element("span", name, css="name")] if name else [escaped(kind)]
    head = Markup(
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(f'{kind}: {name}' if name else kind)}</title>\n"
        f"<style>{STYLE_SHEET}</style>\n"
    )
    body = element("main", element("h1", *title), *sections)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'
