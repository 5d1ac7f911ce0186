"""Turns keyword arguments into the arguments of a command."""

from __future__ import annotations

import datetime
import difflib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from linerate.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    flag: str
    """With its dashes."""
    value: Literal["none", "optional", "required"]
    """Whether a value follows."""
    repeatable: bool = False
    """Whether it may be given several times, with different values."""


def command_line(command: str, known: Mapping[str, Option], given: Mapping[str, object]) -> list[str]:
    """The arguments for the options that were given, in the form `--flag=value`; None stands for an absent option.

    Raises OptionError if the command has no such option, or the option no such values. Whether a value makes sense
    is for the program to say.
    """
    arguments = []
    names: dict[str, str] = {}
    for name, value in given.items():
        option = known.get(name)
        if option is None:
            raise _unknown(command, name, known)
        if value is None:
            continue
        other = names.setdefault(option.flag, name)
        if other != name:
            message = f"{other} and {name} are the same option, {option.flag} of `linerate {command}`: give one of them"
            raise OptionError(message)
        arguments += _arguments(name, option, value)
    return arguments


def _unknown(command: str, name: str, known: Mapping[str, Option]) -> OptionError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"`linerate {command} --help` lists the options"
    return OptionError(f"`linerate {command}` has no option {name}; {hint}")


def _arguments(name: str, option: Option, value: object) -> list[str]:
    if option.repeatable and isinstance(value, (list, tuple)):
        return [argument for one in value for argument in _arguments(name, option, one)]
    if isinstance(value, bool):
        if option.value == "required":
            message = f"{name} needs a value, not {value}: it is {option.flag} of the command line"
            raise OptionError(message)
        return [option.flag] if value else []
    if option.value == "none":
        message = f"{name} is True or False, not {value!r}: {option.flag} of the command line has no value"
        raise OptionError(message)
    return [f"{option.flag}={_text(name, value)}"]


def _text(name: str, value: object) -> str:
    if isinstance(value, datetime.timedelta):
        return f"{value.total_seconds():.9f}"
    if isinstance(value, float):
        # Without an exponent, which the program does not read.
        return f"{value:.9f}".rstrip("0").rstrip(".")
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    message = f"{name} is a {type(value).__name__}, which is no value of an option: write a number or a text"
    raise OptionError(message)
