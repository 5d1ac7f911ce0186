"""What is installed."""

from __future__ import annotations

import re
import subprocess
from importlib import metadata, resources
from pathlib import Path

import linerate

ROOT = Path(__file__).resolve().parents[3]


def test_package_program_and_sources_have_one_version() -> None:
    printed = subprocess.run([linerate.find_program(), "--version"], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == f"linerate {metadata.version('linerate')}"
    declared = re.search(r'^\[workspace\.package\]\nversion = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert declared[1] == metadata.version("linerate")


def test_the_wheel_says_where_it_runs() -> None:
    about = metadata.distribution("linerate").read_text("WHEEL")
    assert about is not None
    assert "Root-Is-Purelib: false" in about
    # The program needs a glibc as new as that of this host, or none.
    assert re.search(r"^Tag: py3-none-manylinux_2_\d+_(x86_64|aarch64|riscv64)$", about, re.MULTILINE)


def test_types_and_licences_are_installed() -> None:
    installed = resources.files("linerate")
    for name in ("py.typed", "LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.txt"):
        assert installed.joinpath(name).is_file()
    assert Path(linerate.__file__).is_relative_to(Path(str(metadata.distribution("linerate").locate_file(""))))


def test_the_command_runs_without_python() -> None:
    assert Path(linerate.find_program()).read_bytes().startswith(b"\x7fELF")
