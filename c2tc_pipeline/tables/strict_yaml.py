"""YAML for settings: plain data of at most 1 MiB, each key once, no aliases."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from c2tc_pipeline.common.errors import InputError

MAX_BYTES = 1 << 20


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
