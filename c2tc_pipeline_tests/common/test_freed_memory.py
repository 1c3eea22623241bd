"""Freed memory goes back to the system: seen from outside, in processes of their own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator is not glibc's")

# Freeing a large array raises the size from which glibc gives arrays back, up to 32 MB; how far is not for sure, so it
# is said outright here. Of the smaller arrays after it the topmost stays, and with it, unless told otherwise, the
# memory of those below.
PROGRAM = """
import ctypes
import sys
import numpy as np
from c2tc_pipeline.common.freed_memory import give_back_freed_memory, give_back_once

def private_megabytes():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024

from_bytes_on = -3
assert ctypes.CDLL(None).mallopt(from_bytes_on, 2**25)
if sys.argv[1] == "from now on":
    assert give_back_freed_memory()
before = private_megabytes()
arrays = [np.ones(2_000_000, dtype=np.uint8) for _ in range(100)]
topmost = max(arrays, key=lambda array: array.ctypes.data)
del arrays
if sys.argv[1] == "once":
    assert give_back_once()
print(private_megabytes() - before)
"""


def kept_megabytes(asked: str) -> float:
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_freed_arrays_go_back_to_the_system() -> None:
    assert kept_megabytes("never") > 100
    assert kept_megabytes("from now on") < 20
    assert kept_megabytes("once") < 20
