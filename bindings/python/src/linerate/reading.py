"""Reads JSON into the dataclasses.

Fields and kinds of events that only newer versions know do no harm: unknown fields are left out, and an event of an
unknown kind has an `UnknownBody`. Names in texts, such as causes and rules, are taken as they are.
"""

from __future__ import annotations

import json
import keyword
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import cattrs
from cattrs.gen import make_dict_structure_fn, override

from linerate import documents
from linerate.documents import CheckDocument, Event, UnknownBody
from linerate.errors import FormatError
from linerate.result import Result

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

T = TypeVar("T")

# The formats that this version reads, without the number of their version, which follows.
RESULT, EVENT, CHECK = "linerate.result/2", "linerate.event/2", "linerate.check/1"


def result_from_json(text: str | bytes) -> Result:
    """Read a result as `linerate test --json` prints it.

    Raises FormatError if the text is no result of this version.
    """
    document = _parse(text)
    _require(document, RESULT, "a result")
    section = _structure(documents.ResultDocument, document)
    return Result(**{field.name: getattr(section, field.name) for field in fields(section)}, json=document)


def check_from_json(text: str | bytes) -> CheckDocument:
    """Read what `linerate check --json` prints."""
    document = _parse(text)
    _require(document, CHECK, "a check")
    return _structure(CheckDocument, document)


def event_from_json(line: str | bytes) -> Event:
    """Read one line of an event log.

    Raises FormatError if the line is no event, or starts a log of another version.
    """
    document = _parse(line)
    body = document.get("body")
    if isinstance(body, dict) and body.get("kind") in ("run_started", "plan_started"):
        _require(body, EVENT, "an event log")
    return _structure(Event, document)


def read_result(path: str | os.PathLike[str]) -> Result:
    """Read a file that `linerate test --json` or `linerate export --format json` wrote."""
    return result_from_json(Path(path).read_bytes())


def read_events(path: str | os.PathLike[str]) -> Iterator[Event]:
    """Read a file that `linerate test --json-stream` or `linerate export --format jsonl` wrote, event by event.

    Raises FormatError with the number of a line that is no event.
    """
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield event_from_json(line)
            except FormatError as error:
                message = f"{path}:{number}: {error}"
                raise FormatError(message) from error


def _parse(text: str | bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        message = f"this is no JSON: {error}"
        raise FormatError(message) from error
    if not isinstance(document, dict):
        message = f"this is no JSON object but a {type(document).__name__}"
        raise FormatError(message)
    return document


def _require(document: dict[str, Any], wanted: str, what: str) -> None:
    found = document.get("schema")
    if found == wanted:
        return
    name, _, version = wanted.partition("/")
    if not isinstance(found, str) or not found.startswith(f"{name}/"):
        message = f"this is not {what} of linerate: its schema is {found!r} instead of {wanted!r}"
        raise FormatError(message)
    older = found.removeprefix(f"{name}/").isdecimal() and int(found.rpartition("/")[2]) < int(version)
    remedy = "`linerate import` and `linerate export` bring a log up to date" if older else "update this package"
    message = f"this is {what} of another version: {found} instead of {wanted}; {remedy}"
    raise FormatError(message)


def _structure(kind: type[T], document: dict[str, Any]) -> T:
    try:
        return _CONVERTER.structure(document, kind)
    except (cattrs.BaseValidationError, FormatError) as error:
        message = "; ".join(cattrs.transform_error(error, path="the document"))
        raise FormatError(message) from error


def _scalar(kind: type[T], accepted: type | tuple[type, ...]) -> Callable[[object, type], T]:
    """Accept only values of the type, where cattrs would convert any other."""

    def structure(value: object, _: type) -> T:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            message = f"{value!r} is no {kind.__name__}"
            raise TypeError(message)
        return kind(value)  # type: ignore[call-arg]

    return structure


def _structure_of(kind: type[Any]) -> Callable[[Any, Any], Any]:
    """How to make a dataclass. Fields with the name of a keyword end in an underscore in Python only."""
    plain = {field.name: field.name.removesuffix("_") for field in fields(kind)}
    renamed = {name: override(rename=key) for name, key in plain.items() if keyword.iskeyword(key)}
    # The stub says nothing about names of fields.
    return make_dict_structure_fn(kind, _CONVERTER, **renamed)  # type: ignore[arg-type]


def _is_literal(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin is Literal


def _structure_body(value: dict[str, Any], _: object) -> object:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        message = "an event's body has no kind"
        raise TypeError(message)
    known = _BODIES.get(kind)
    return _CONVERTER.structure(value, known) if known else UnknownBody(kind=kind, fields=value)


_BODIES: dict[str, type[Any]] = {
    get_args(get_type_hints(kind)["kind"])[0]: kind for kind in get_args(documents.Body) if kind is not UnknownBody
}

_CONVERTER = cattrs.Converter()
_CONVERTER.register_structure_hook(int, _scalar(int, int))
_CONVERTER.register_structure_hook(float, _scalar(float, (int, float)))
_CONVERTER.register_structure_hook(str, _scalar(str, str))
_CONVERTER.register_structure_hook(bool, _scalar(bool, bool))
_CONVERTER.register_structure_hook_factory(is_dataclass, _structure_of)
_CONVERTER.register_structure_hook_func(_is_literal, lambda value, _: value)
_CONVERTER.register_structure_hook_func(lambda kind: kind == documents.Body, _structure_body)
