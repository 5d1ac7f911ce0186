#!/usr/bin/env python3
"""Writes the licences of all code in the programs of `make dist`: third-party.py FILE --zig FOLDER [--rust FOLDER].

FOLDER of --zig has the compiler and its libraries, that of --rust the sources of Rust. Packages of Rust are those of
the full program on all processors for which it is built, and packages of the web pages are those in ui/. The same
sources and tools make the same file. A part whose licence wants its text, and has none, is an error.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
TARGETS = ("x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl")
WIDTH = 78

TEXT_NAME = re.compile(r"licen[cs]e|copying|copyright|notice|unlicense", re.IGNORECASE)
CODE = (".rs", ".c", ".h", ".js", ".json", ".py", ".toml")
# Texts in packages about code that is not compiled, or for a choice that is not made.
OTHER_TEXTS = {("libsqlite3-sys", "sqlcipher/LICENSE"), ("zstd-sys", "zstd/COPYING")}
# Packages next to Rust's standard library that are compiled for other systems, or by other libraries of Rust only.
OTHER_SYSTEMS = {
    "dlmalloc",
    "foldhash",
    "fortanix-sgx-abi",
    "getopts",
    "hermit-abi",
    "moto-rt",
    "r-efi",
    "r-efi-alloc",
    "unwinding",
    "vex-sdk",
    "wasi",
    "wit-bindgen",
}
PUBLIC_DOMAIN = "The authors of SQLite have dedicated it to the public domain: https://sqlite.org/copyright.html"


class Part(NamedTuple):
    """Code of somebody, its licence as an SPDX expression, and the texts that come with it."""

    name: str
    licence: str
    texts: list[str]


def texts_in(folder: Path, package: str) -> list[str]:
    """The files with licences in a package, also those of code that it has copied."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "node_modules")
        for name in sorted(files):
            path = Path(place, name)
            if not TEXT_NAME.match(name) or name.endswith(CODE):
                continue
            if (package, path.relative_to(folder).as_posix()) not in OTHER_TEXTS:
                found.append(read(path))
    return found


def read(path: Path) -> str:
    """A text without the differences that editors make."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def cargo(*arguments: str) -> str:
    """What cargo prints about this workspace."""
    command = [os.environ.get("CARGO", "cargo"), *arguments]
    return subprocess.run(command, cwd=TOP, check=True, stdout=subprocess.PIPE, text=True).stdout


def rust_packages() -> list[Part]:
    """The packages of others that are compiled into the full program."""
    tree = ["tree", "--locked", "--package", "linerate", "--edges", "normal", "--prefix", "none", "--format", "{p}"]
    compiled = set()
    for target in TARGETS:
        compiled |= {tuple(line.split()[:2]) for line in cargo(*tree, "--target", target).splitlines() if line}
    metadata = ["metadata", "--locked", "--format-version", "1"]
    platforms = [f"--filter-platform={target}" for target in TARGETS]
    parts = []
    for package in json.loads(cargo(*metadata, *platforms))["packages"]:
        name, version = package["name"], package["version"]
        if package["source"] is None or (name, f"v{version}") not in compiled:
            continue
        folder = Path(package["manifest_path"]).parent
        licence = (package["license"] or "see its text").replace(" / ", " OR ").replace("/", " OR ")
        parts.append(Part(f"{name} {version}", licence, texts_in(folder, name)))
        if name == "libsqlite3-sys":
            header = (folder / "sqlite3/sqlite3.h").read_text(encoding="utf-8")
            sqlite = re.search(r'^#define SQLITE_VERSION\s+"(.*)"', header, re.MULTILINE)
            parts.append(Part(f"SQLite {sqlite[1]}" if sqlite else "SQLite", "public domain", [PUBLIC_DOMAIN]))
    return sorted(parts, key=lambda part: part.name.lower())


def standard_library(rust: Path) -> list[Part]:
    """The standard library of Rust, and the packages that it uses on Linux."""
    parts = [Part("Rust's standard library", "Apache-2.0 OR MIT", [read(rust / "COPYRIGHT")])]
    for folder in sorted((rust / "library/vendor").iterdir()):
        manifest = (folder / "Cargo.toml").read_text(encoding="utf-8")
        name, version, licence = (
            re.search(rf'^{key} = "(.*)"', manifest, re.MULTILINE)[1] for key in ("name", "version", "license")
        )
        if name not in OTHER_SYSTEMS:
            parts.append(Part(f"{name} {version}", licence.replace("/", " OR "), texts_in(folder, name)))
    return parts


def c_libraries(zig: Path) -> list[Part]:
    """What zig links: musl, the functions that compilers call, and LLVM's libunwind."""
    return [
        Part("musl, the C library", "MIT", [read(zig / "lib/libc/musl/COPYRIGHT")]),
        Part("compiler_rt of zig", "MIT", [read(zig / "LICENSE")]),
        Part("libunwind of LLVM", "Apache-2.0 WITH LLVM-exception", [read(zig / "lib/libunwind/LICENSE.TXT")]),
    ]


def page_packages(ui: Path) -> list[Part]:
    """The packages in the pages that the program shows: all that are not for development only."""
    parts = []
    for path, package in json.loads((ui / "package-lock.json").read_text(encoding="utf-8"))["packages"].items():
        if path and not package.get("dev"):
            name = path.rpartition("node_modules/")[2]
            parts.append(Part(f"{name} {package['version']}", package["license"], texts_in(ui / path, name)))
    return parts


def may_use_apache(licence: str) -> bool:
    """Whether a part may be used under the Apache License alone, whose text names nobody."""
    choices = [choice.strip(" ()") for choice in licence.split(" OR ")]
    return " AND " not in licence and "Apache-2.0" in choices


def document(sections: list[tuple[str, list[Part]]], apache: str) -> str:
    """The whole file. A text that several parts have is there once."""
    numbers: dict[str, int] = {}
    texts: list[str] = []
    lines: list[str] = []
    missing: list[str] = []
    for title, parts in sections:
        lines += ["", title, "-" * len(title), ""]
        for part in parts:
            own = part.texts or ([apache] if may_use_apache(part.licence) else [])
            if not own:
                missing.append(f"{part.name} ({part.licence})")
            used = []
            for text in own:
                key = " ".join(text.split())
                if key not in numbers:
                    texts.append(text)
                    numbers[key] = len(texts)
                used.append(numbers[key])
            lines.append(f"{part.name}: {part.licence} [{', '.join(map(str, sorted(set(used))))}]")
    if missing:
        sys.exit(f"third-party.py: no text of the licence of {', '.join(missing)}")
    for number, text in enumerate(texts, 1):
        lines += ["", "=" * WIDTH, f"[{number}]", "", text]
    return "\n".join([*HEAD, *lines, ""])


HEAD = [
    "The licences of linerate, and of the code of others in its programs",
    "====================================================================",
    "",
    "Each part has a line with its licence, and the numbers of its texts below. Where",
    'a licence has an "OR", you have the choice.',
]


def main() -> None:
    """Reads the command line, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--zig", type=Path, required=True)
    parser.add_argument("--rust", type=Path, default=Path("/usr/lib/rustlib/src/rust"))
    parser.add_argument("--ui", type=Path, default=TOP / "ui")
    arguments = parser.parse_args()

    apache = read(TOP / "LICENSE-APACHE")
    sections = [
        ("linerate", [Part("linerate", "Apache-2.0 OR MIT", [apache, read(TOP / "LICENSE-MIT")])]),
        ("C library", c_libraries(arguments.zig)),
        ("Standard library", standard_library(arguments.rust)),
        ("Packages of Rust", rust_packages()),
        ("Packages of the web pages", page_packages(arguments.ui)),
    ]
    text = document(sections, apache)
    arguments.file.write_text(text, encoding="utf-8")
    print(f"{arguments.file}: {sum(len(parts) for _, parts in sections)} parts")


main()
