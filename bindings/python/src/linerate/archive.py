"""Checks published figures, and reads the archive."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from linerate.arguments import command_line
from linerate.errors import run_error
from linerate.options import CHECK
from linerate.program import find_program, run_to_end
from linerate.reading import check_from_json, event_from_json, result_from_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Unpack

    from linerate.documents import CheckDocument, Event
    from linerate.options import CheckOptions
    from linerate.result import Result

# Exit codes of `linerate check` with a judgement: not accepted, impossible.
JUDGED = (0, 3, 4)


def check(*files: str | os.PathLike[str], **options: Unpack[CheckOptions]) -> CheckDocument:
    """Check whether published figures are physically possible: those in files, or those of the options.

    An impossible figure is a judgement like the others, and no exception: see `verdict`.

    Raises OptionError for an option that does not exist, and RunError if nothing can be checked.
    """
    arguments = [*command_line("check", CHECK, options), "--json", "--"]
    arguments += [os.fspath(file) for file in files]
    ended = run_to_end([find_program(), "check", *arguments])
    if ended.exit_code not in JUDGED:
        raise run_error(ended.exit_code, ended.stderr)
    return check_from_json(ended.stdout)


def export(
    run: str = "latest",
    format: Literal["jsonl", "json", "csv", "summary-csv", "markdown", "html", "svg", "parquet"] = "json",  # noqa: A002
    *,
    archive: str | os.PathLike[str] | None = None,
) -> bytes:
    """Return an archived run in a format of `linerate export`.

    `run` is its id or a unique beginning of it, or its name. `archive` is a file or a URL.

    Raises RunError if there is no such run.
    """
    place = [] if archive is None else [f"--archive={os.fspath(archive)}"]
    ended = run_to_end([find_program(), "export", f"--format={format}", "--output=-", *place, "--", run])
    if ended.exit_code != 0:
        raise run_error(ended.exit_code, ended.stderr)
    return ended.stdout


def archived(run: str = "latest", *, archive: str | os.PathLike[str] | None = None) -> Result:
    """Return the result of an archived run."""
    return result_from_json(export(run, "json", archive=archive))


def archived_events(run: str = "latest", *, archive: str | os.PathLike[str] | None = None) -> Iterator[Event]:
    """Return the events of an archived run."""
    return map(event_from_json, export(run, "jsonl", archive=archive).splitlines())
