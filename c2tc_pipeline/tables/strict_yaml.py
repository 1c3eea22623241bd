"""YAML for settings: plain data only, each key once, no aliases, no surprises in size."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from c2tc_pipeline.common.errors import InputError

MAX_BYTES = 1 << 20


class _Refusal(yaml.MarkedYAMLError):
    """Something that YAML allows and we don't."""


def _misfit(node: yaml.Node) -> _Refusal:
    kind = node.tag.rpartition(":")[2]
    return _Refusal(problem=f"a value is not a valid {kind}", problem_mark=node.start_mark)


class _StrictLoader(yaml.SafeLoader):
    """The safe loader without aliases and with each key once."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        # An alias can stand for a thousand others; no description of a table needs one.
        if self.check_event(yaml.AliasEvent):
            raise _Refusal(problem="aliases (*) are not allowed", problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise _misfit(node)
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise _Refusal(problem="a key must be text", problem_mark=key_node.start_mark)
            if key in seen:
                raise _Refusal(problem=f"the key {key!r} stands there twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # A tag can stand before any text, and the parser takes for granted that it fits: "!!bool maybe".
            raise _misfit(node) from None


# A run of Dagster asks for its definitions, and so for the catalogue, five times, and a parser in Python takes half a
# millisecond a table.
@lru_cache(maxsize=2)
def _parsed(text: str) -> Any:
    return yaml.load(text, Loader=_StrictLoader)


def load_yaml(path: Path) -> Any:
    """Read a YAML file of plain data.

    Parameters
    ----------
    path : Path
        A local file of at most 1 MiB.

    Returns
    -------
    object
        Dicts, lists and scalars.

    Raises
    ------
    InputError
        When the file is absent, too large, not UTF-8, not YAML, or uses aliases or a key twice.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.yaml"
    >>> _ = path.write_text("a: [1, 2]")
    >>> load_yaml(path)
    {'a': [1, 2]}
    """
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
