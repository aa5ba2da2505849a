# SPDX-License-Identifier: BSD-3-Clause
"""The SIMD levels that a program's packet path is compiled for, one of which is forced by a variable."""
import os
import subprocess

import pytest

LEVELS = "portable", "sse42", "avx2", "avx512"
VARIABLE = "MILLRACE_SIMD"


def refusal(program, level, command="replay"):
    """The exit code of a command without arguments under this level, and what it says."""
    done = subprocess.run([program, command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, VARIABLE: level}, timeout=60, check=False)
    return done.returncode, done.stderr


def has(program, level):
    """Does this processor, as the program sees it, have the level?"""
    return VARIABLE not in refusal(program, level)[1]


def force(program, level, monkeypatch):
    """What is run until the test's end runs under the level; skipped where there is none, or another is set."""
    told = os.environ.get(VARIABLE) or level
    if told != level:
        pytest.skip(f"{VARIABLE} is {told}")
    if not has(program, level):
        pytest.skip(f"this CPU lacks {level}")
    monkeypatch.setenv(VARIABLE, level)
