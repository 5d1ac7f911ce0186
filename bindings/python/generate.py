"""Writes src/linerate/documents.py and src/linerate/options.py from docs/reference.

The program's published JSON schemas become dataclasses (by datamodel-code-generator), and its published list of
options becomes keyword arguments. Neither is edited by hand:

    python generate.py            write both files
    python generate.py --check    fail if one of them is out of date
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema: TypeAlias = dict[str, Any]

HERE = Path(__file__).resolve().parent
REFERENCE = HERE.parent.parent / "docs" / "reference"
PACKAGE = HERE / "src" / "linerate"
REMEDY = "run `scripts/python-package.sh generate` and commit the result"

# The first schema that has a definition decides. That of results comes first: it says what the program writes, and
# therefore which fields are always there. That of events says what it reads.
SCHEMAS = ("result", "event", "check")

# Options that only concern people at a terminal, or that this package sets.
OMITTED = {"json", "json_stream", "quiet", "rows", "explain", "all_streams", "csv", "plot", "all"}


def main(arguments: list[str]) -> int:
    """Writes or compares the files; returns the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for name, text in (("documents.py", documents()), ("options.py", options())):
        path = PACKAGE / name
        if path.exists() and path.read_text() == text:
            continue
        if arguments:
            stale.append(name)
        else:
            path.write_text(text)
            print(f"wrote {name}")
    for name in stale:
        print(f"{name} differs from what docs/reference says: {REMEDY}", file=sys.stderr)
    return 1 if stale else 0


# Dataclasses


def documents() -> str:
    """The module with a dataclass for every object in the schemas."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "documents.json"), Path(folder, "documents.py")
        source.write_text(json.dumps(one_schema()))
        command = [sys.executable, "-m", "datamodel_code_generator"]
        command += ["--input", str(source), "--output", str(target), "--input-file-type", "jsonschema"]
        command += ["--output-model-type", "dataclasses.dataclass", "--target-python-version", "3.10"]
        command += ["--dataclass-arguments", '{"frozen": true, "slots": true, "kw_only": true}']
        command += ["--use-standard-collections", "--use-union-operator", "--enum-field-as-literal", "all"]
        command += ["--use-schema-description", "--use-field-description", "--use-inline-field-description"]
        command += ["--use-single-line-docstring", "--strict-nullable", "--disable-timestamp"]
        command += ["--formatters", "builtin", "--use-double-quotes"]
        command += ["--custom-file-header", HEADER]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"datamodel-code-generator failed:\n{done.stderr}")
        return formatted(target.read_text())


HEADER = '''"""The dataclasses of results, events and checks, as docs/reference describes them.

Names end in their unit: `_ns` nanoseconds, `_bps` bits per second, `_bytes` bytes. What was not measured is None,
never 0. This file is written by generate.py.
"""'''


def one_schema() -> Schema:
    """All schemas in one, prepared so that every class gets a name of its own."""
    definitions: Schema = {}
    for name in SCHEMAS:
        schema = json.loads((REFERENCE / f"{name}.schema.json").read_text())
        own = schema.pop("$defs")
        own = rename(own, schema, settings_by_type(own))
        for key, definition in (own | {schema.pop("title"): schema}).items():
            definitions.setdefault(key, definition)
    # The names of the evidence are open: every version adds some.
    del definitions["EvidenceKey"]
    within = name_variants(definitions, "Body")
    for definition in definitions.values():
        simplify(definition)
    root: Schema = definitions.pop("ResultDocument")
    # The class of the variant has all that these have.
    used = {part.get("$ref") for part in walk([root, definitions])}
    for name in within:
        if f"#/$defs/{name}" not in used:
            del definitions[name]
    return root | {"title": "ResultDocument", "$defs": definitions}


def settings_by_type(definitions: Schema) -> dict[str, str]:
    """The numbered definitions of one generic type, whose numbers differ between schemas, and names by their type."""
    names = {}
    for key, definition in definitions.items():
        if re.fullmatch(r"Effective\d*", key):
            kind = kind_of(definition["properties"]["effective"])
            names[key] = f"{kind.capitalize()}Setting"
    return names


def kind_of(schema: Schema) -> str:
    """What a nullable value is: a JSON type, or a type of the schema by its name."""
    kinds = {"string": "text", "integer": "int", "boolean": "bool"}
    quantities = {"Bitrate": "rate", "Bytes": "size", "Span": "time"}
    if "anyOf" in schema:
        return quantities[schema["anyOf"][0]["$ref"].rsplit("/", 1)[1]]
    return kinds[schema["type"][0]]


def rename(definitions: Schema, root: Schema, names: dict[str, str]) -> Schema:
    """The definitions under other names, with all references to them."""
    for schema in walk([definitions, root]):
        target = schema.get("$ref", "").removeprefix("#/$defs/")
        if target in names:
            schema["$ref"] = f"#/$defs/{names[target]}"
    return {names.get(key, key): definition for key, definition in definitions.items()}


def name_variants(definitions: Schema, name: str) -> set[str]:
    """Makes a definition with a name of every variant of a union that `kind` distinguishes.

    Returns the names of the definitions of which a variant has all properties.
    """
    union = definitions[name]["oneOf"]
    within = set()
    for number, variant in enumerate(union):
        kind = variant["properties"]["kind"]["const"]
        title = "".join(word.capitalize() for word in kind.split("_")) + name
        base_name = variant.pop("$ref", "").removeprefix("#/$defs/")
        base = definitions.get(base_name)
        if base is not None:
            within.add(base_name)
            variant["properties"] |= base["properties"]
            variant["required"] = sorted({*variant["required"], *base.get("required", [])})
        definitions[title] = variant
        union[number] = {"$ref": f"#/$defs/{title}"}
    definitions["UnknownBody"] = {
        "description": "An event of a kind that only a newer version knows.",
        "type": "object",
        "properties": {
            "kind": {"type": "string", "description": "Its kind."},
            "fields": {"type": "object", "additionalProperties": True, "description": "All its fields."},
        },
        "required": ["kind", "fields"],
    }
    union.append({"$ref": "#/$defs/UnknownBody"})
    return within


def simplify(schema: Schema) -> None:
    """Removes what a dataclass cannot say, and lists and tables that are left out become empty."""
    for part in walk(schema):
        for key in ("format", "pattern", "minimum", "maximum", "default", "propertyNames"):
            if not isinstance(part.get(key), dict) or key in ("default", "propertyNames"):
                part.pop(key, None)
        properties = part.get("properties", {})
        for key in properties.keys() - set(part.get("required", [])):
            if properties[key].get("type") == "array":
                properties[key]["default"] = []
            elif "additionalProperties" in properties[key]:
                properties[key]["default"] = {}


def walk(tree: Any) -> Iterator[Schema]:
    """Every object within a JSON document, the innermost first."""
    if isinstance(tree, dict):
        for below in list(tree.values()):
            yield from walk(below)
        yield tree
    elif isinstance(tree, list):
        for below in tree:
            yield from walk(below)


# Options


def options() -> str:
    """The module with the keyword arguments of the commands."""
    commands = json.loads((REFERENCE / "options.json").read_text())["commands"]
    parts = [OPTIONS_HEADER]
    for command, every in commands.items():
        known = [option for option in every if option["id"] not in OMITTED]
        parts += [typed_options(command, known), option_table(command, known)]
    units = re.findall(r"^## `([^`]+)`$.*?^\*\*Unit:\*\* ([^,]+),", metrics(), re.MULTILINE | re.DOTALL)
    rows = [f"    {name!r}: {('1' if unit == 'count' else unit)!r}," for name, unit in units]
    parts.append("\n".join(["# The units of the metrics.", "UNITS = {", *rows, "}"]))
    return formatted("\n\n".join(parts))


OPTIONS_HEADER = '''"""The options of the commands as keyword arguments, and the units of the metrics.

An option has the name of its flag, or of its field in docs/reference/spec.schema.json without the unit: `parallel` and
`streams` are the same. This file is written by generate.py.
"""

from __future__ import annotations

import datetime
import os
from typing import Literal, TypeAlias, TypedDict

from linerate.arguments import Option

Bitrate: TypeAlias = float | str
"""Bits per second, or a text such as "2.5G" (decimal)."""

Size: TypeAlias = int | str
"""Bytes, or a text such as "64K" (binary)."""

Duration: TypeAlias = float | datetime.timedelta | str
"""Seconds, a timedelta, or a text such as "200ms"."""

Share: TypeAlias = float | str
"""A ratio, or a text such as "1%"."""

Name: TypeAlias = str
"""A text."""

File: TypeAlias = str | os.PathLike[str]
"""The path of a file."""'''

# The types of values by their names in the help. A name that is not here stops the generator.
VALUE_TYPES = {
    "Duration": "SECONDS TIME",
    "Bitrate": "RATE",
    "Size": "BYTES SIZE",
    "Share": "SHARE RATIO",
    "File": "FILE FILE|URL",
    "int": "PORT HOPS REQUESTS PER_SECOND BLOCKS STREAMS CPU PACKETS SEGMENTS CALLS TAGS POINTS TRIALS",
    "int | str": "BYTE CLASS",
    "float": "KM",
    "Name": "AGENT NAME ADDRESS GROUP DEVICE SHA256 TEXT LIST notes.KEY=TEXT",
}


def metrics() -> str:
    """The page with all metrics."""
    return (REFERENCE / "metrics.md").read_text()


def typed_options(command: str, known: list[Schema]) -> str:
    """The class that type checkers know the keyword arguments by."""
    name = f"{command.capitalize()}Options"
    lines = [f"class {name}(TypedDict, total=False):", f'    """The options of `linerate {command}`."""', ""]
    for option in known:
        text = " ".join(option["help"].split()).replace('"', "'")
        for argument in argument_names(option):
            lines += [f"    {argument}: {value_type(option)}", f'    """{text}"""', ""]
    return "\n".join(lines)


def option_table(command: str, known: list[Schema]) -> str:
    """The table that says how each option is passed on."""
    rows = []
    for option in known:
        repeatable = ", repeatable=True" if option["repeatable"] else ""
        arguments = f"{'--' + option['long']!r}, {option['value']!r}{repeatable}"
        rows += [f"    {name!r}: Option({arguments})," for name in argument_names(option)]
    return "\n".join([f"{command.upper()}: dict[str, Option] = {{", *rows, "}"])


def argument_names(option: Schema) -> list[str]:
    """The name of the flag, and that of the field if it is another."""
    names = [option["long"], option["id"], *option["aliases"]]
    unique = dict.fromkeys(name.replace("-", "_") for name in names)
    return [f"{name}_" if keyword.iskeyword(name) else name for name in unique]


def value_type(option: Schema) -> str:
    """The Python type of an option's value."""
    if option["value"] == "none":
        return "bool"
    if option["values"]:
        kind = f"Literal[{', '.join(map(repr, option['values']))}]"
    else:
        kinds = [kind for kind, names in VALUE_TYPES.items() if option["value_name"] in names.split()]
        if not kinds:
            raise SystemExit(f"--{option['long']}: VALUE_TYPES says nothing about {option['value_name']}")
        kind = kinds[0]
    if option["repeatable"]:
        kind = f"{kind} | list[{kind}]"
    return f"bool | {kind}" if option["value"] == "optional" else kind


def formatted(text: str) -> str:
    """The text as ruff formats the rest of the package."""
    for command in (["check", "--fix-only", "--quiet"], ["format", "--quiet"]):
        ruff = [
            sys.executable,
            "-m",
            "ruff",
            *command,
            "--stdin-filename",
            str(PACKAGE / "documents.py"),
            "-",
        ]
        done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=HERE)
        text = done.stdout
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
