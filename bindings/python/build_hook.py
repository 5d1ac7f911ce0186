"""Puts the program into the wheel, and says which platforms it runs on.

The environment variable LINERATE_PROGRAM names the program, and LINERATE_LICENCES the file with the licences of what is
linked into it, if there is one.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The numbers of machines in an ELF header, and their names in tags.
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}

# The type of an ELF program header that names a dynamic linker.
PT_INTERP = 3


class ProgramHook(BuildHookInterface[Any]):
    """Adds the program as a script."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change what goes into the wheel."""
        if version == "editable":
            return
        named = os.environ.get("LINERATE_PROGRAM")
        if named is None:
            message = "LINERATE_PROGRAM must name the program that the wheel contains; `make wheel` sets it"
            raise RuntimeError(message)
        build_data["shared_scripts"] = {str(Path(named).resolve()): "linerate"}
        build_data["tag"] = f"py3-none-{platforms(Path(named).read_bytes())}"
        build_data["pure_python"] = False
        licences = os.environ.get("LINERATE_LICENCES")
        if licences is not None:
            build_data["force_include"][licences] = "linerate/THIRD-PARTY.txt"


def platforms(program: bytes) -> str:
    """The platforms on which a program runs, as in the name of a wheel.

    A static program runs everywhere on Linux. Any other needs a glibc that has the symbols that it uses.
    """
    if program[:6] != b"\x7fELF\x02\x01":
        message = "the program is no 64-bit little-endian ELF file"
        raise RuntimeError(message)
    (machine,) = struct.unpack_from("<H", program, 18)
    name = MACHINES.get(machine)
    if name is None:
        message = f"the program is for a machine that has no tag: ELF number {machine}"
        raise RuntimeError(message)
    if is_static(program):
        return f"manylinux_2_17_{name}.musllinux_1_1_{name}"
    versions = [tuple(map(int, found)) for found in re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?=[.\0])", program)]
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{name}"


def is_static(program: bytes) -> bool:
    """Whether a program needs no dynamic linker."""
    (offset,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    types = [struct.unpack_from("<I", program, offset + size * number)[0] for number in range(count)]
    return PT_INTERP not in types
