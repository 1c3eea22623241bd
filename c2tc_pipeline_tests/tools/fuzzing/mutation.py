"""Changing good input into bad: bytes, JSON values and words of a format, all from a seeded generator."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

_NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
# What readers of JSON and YAML take for granted, and should not.
STRANGE_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1e308, -0.5, 1e-320, float("nan"), float("inf")),
    *(
        "",
        "x",
        "../x",
        "/etc/passwd",
        "a\0b",
        "\ud800",
        "\u202eabc",
        "c:\\x",
        "..\\x",
        "NaN",
        "1e999",
        "=1+1",
        "é" * 300,
    ),
    *([], {}, [[]], [None], {"": None}, [1, "a"], {"a": {"a": {"a": 1}}}, "<script>", "name\nname", "\x1b[31m"),
)


def mutated_bytes(
    content: bytes, rng: random.Random, words: Sequence[bytes] = (), others: Sequence[bytes] = ()
) -> bytes:
    """Return bytes that differ in a few places.

    Parameters
    ----------
    content : bytes
        What to start from.
    rng : random.Random
        Decides everything.
    words : sequence of bytes
        Pieces that mean something in the format.
    others : sequence of bytes
        Other good inputs, to take parts from.
    """
    changed = bytearray(content)
    for _ in range(min(1 + int(rng.expovariate(0.5)), 12)):
        _change_once(changed, rng, words, others)
    return bytes(changed[: 1 << 20])


def _change_once(changed: bytearray, rng: random.Random, words: Sequence[bytes], others: Sequence[bytes]) -> None:
    # Formats keep what matters most at their ends.
    ends = rng.random()
    reach = len(changed) if ends < 0.6 else min(len(changed), 200)
    place = rng.randrange(reach + 1) if ends < 0.8 else len(changed) - rng.randrange(reach + 1)
    length = min(1 + int(rng.expovariate(0.1)), 4096)
    match rng.randrange(9):
        case 0 if place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        case 1 if place < len(changed):
            changed[place] = rng.choice((0, 1, 9, 10, 13, 34, 44, 127, 128, 255, rng.randrange(256)))
        case 2:
            del changed[place : place + length]
        case 3:
            changed[place:place] = changed[place : place + length] * rng.choice((1, 1, 2, 50))
        case 4:
            changed[place:place] = rng.randbytes(min(length, 16))
        case 5 if words:
            changed[place:place] = rng.choice(words)
        case 6 if others:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            changed[place : place + rng.choice((0, length))] = other[start : start + 8 * length]
        case 7:
            del changed[place:]
        case _:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(_NUMBERS) % (1 << 8 * width)
            changed[place : place + width] = number.to_bytes(width, rng.choice(("little", "big")))


def mutated_value(value: Any, rng: random.Random) -> Any:
    """Return a JSON value with a few of its parts replaced, removed, repeated or renamed."""
    changed = copy.deepcopy(value)
    for _ in range(min(1 + int(rng.expovariate(0.7)), 6)):
        places = list(_places(changed))
        if not places:
            return rng.choice(STRANGE_VALUES)
        holder, key = rng.choice(places)
        match rng.randrange(7):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 1:
                holder[str(rng.choice(STRANGE_VALUES))] = holder.pop(key)
            case 2:
                other, its_key = rng.choice(places)
                holder[key] = copy.deepcopy(other[its_key]) if its_key in _keys(other) else None
            case 3 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
                holder[key] = rng.choice((-holder[key], holder[key] + 1, holder[key] * 1000, holder[key] / 3, 2**40))
            case 4 if isinstance(holder[key], str):
                text = holder[key]
                holder[key] = rng.choice((text + "x", text[:-1], text.upper(), text * 3, f"../{text}", text + "\0"))
            case _:
                holder[key] = copy.deepcopy(rng.choice(STRANGE_VALUES))
    return changed


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key in list(_keys(value)):
            yield value, key
            yield from _places(value[key])
