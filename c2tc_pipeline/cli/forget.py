"""The command that takes source rows out of a condensed table: ``c2tc forget``.

As in :mod:`c2tc_pipeline.cli.main`, which gathers all commands, heavy imports happen inside.
"""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--ids", type=click.Path(path_type=Path), required=True, help="A text file with one id a line.")
@click.option(
    "--key",
    help="The column that holds the ids.  [default: ids are positions counted from 0]",
)
@click.option("--source", help="Where the source is now, if not where it was; its content must be the same.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON and nothing else.")
def forget(directory: Path, ids: Path, key: str | None, source: str | None, as_json: bool) -> None:
    """Make DIRECTORY, written by c2tc condense, forget source rows.

    Condensed rows that these rows stand behind are computed again from the others, as if the rows had not been there;
    all other condensed rows stay as they are. The source is read, and must be as it was: forget first, then delete
    there.

    \b
    Examples:
      c2tc forget small --ids rows.txt
      c2tc forget small --ids persons.txt --key person_id
    """
    from c2tc_pipeline.cli.forgetting import forget_in_directory

    found = forget_in_directory(directory, ids, key=key, source=source)
    if as_json:
        click.echo(json.dumps({**found.counts(), "rows_in": len(found.table.membership), "rows_out": len(found.table)}))
        return
    if not found.rows:
        click.echo(f"No condensed row of {directory} stands for any of these rows; nothing was changed.")
        return
    click.echo(
        f"Forgot {_counted(found.rows, 'source row')} of {directory}: {_counted(found.recomputed, 'condensed row')} "
        f"computed again, {found.disappeared} gone, {found.merged} merged; {len(found.table)} are left."
    )
    if found.strings_removed:
        click.echo(f"Removed from the encoder: {_counted(found.strings_removed, 'string')} that no remaining row has.")
    stays = "scales, class shares and network weights"
    if found.strings_kept:
        stays += f", and {_counted(found.strings_kept, 'string')} that the codes of other rows depend on"
    click.echo(f"What the encoder learnt from the rows stays: {stays}. To be rid of that, condense anew without them.")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
