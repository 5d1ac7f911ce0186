"""A real server on the loopback interface, and an archive of its own for every test run."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

import linerate

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _own_archive(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["LINERATE_ARCHIVE"] = str(tmp_path_factory.mktemp("archive") / "archive.sqlite")


@pytest.fixture(scope="session")
def server(_own_archive: None) -> Iterator[str]:
    """The address of a server."""
    command = [linerate.find_program(), "serve", "--port", "0", "--bind", "127.0.0.1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        listening = json.loads(process.stdout.readline())
        yield f"127.0.0.1:{listening['port']}"
        process.terminate()
        process.stdout.close()
