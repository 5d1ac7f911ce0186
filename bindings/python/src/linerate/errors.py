"""What can go wrong, as exceptions."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from linerate.result import Result

# The exit codes of the program, as its README lists them.
MEANINGS = {
    1: "the measurement failed, or the result could not be written",
    2: "the command line is wrong",
    3: "the result was not accepted",
    4: "a checked figure is impossible",
    130: "interrupted (SIGINT)",
    143: "interrupted (SIGTERM)",
}


class LinerateError(Exception):
    """The base of all exceptions of this package, except for cancellations."""


class ProgramNotFoundError(LinerateError):
    """The program linerate is not installed."""


class OptionError(LinerateError, TypeError):
    """A keyword argument is no option of the command, or has a value of a wrong type."""


class FormatError(LinerateError, ValueError):
    """A document does not have the format that this version of the package reads."""


class RunError(LinerateError):
    """The program ended with an error.

    `exit_code` is its exit code, negative if a signal ended it. `meaning` says what the code means, and `stderr` is
    what the program said about it. `result` is what was measured until then; None if it printed no result.
    """

    def __init__(self, exit_code: int, stderr: str, result: Result | None = None) -> None:
        self.exit_code = exit_code
        self.meaning = _meaning(exit_code)
        self.stderr = stderr.strip()
        self.result = result
        super().__init__(f"{self.meaning} (exit code {exit_code}): {self.stderr or 'it printed no message'}")


class MeasurementError(RunError):
    """Exit code 1: the host could not be measured, or the measurement ended half-way."""


class UsageError(RunError):
    """Exit code 2: the program refuses the options; `stderr` names the option and the remedy."""


class InterruptedRunError(RunError):
    """Exit codes 130 and 143: somebody else interrupted the program."""


class RunTimeoutError(RunError, TimeoutError):
    """The program was ended because it did not end within the timeout."""


# The attribute of a CancelledError with what was measured. A class of its own would be no cancellation to
# asyncio.timeout and asyncio.TaskGroup, which compare the type.
_MEASURED = "linerate_result"


def note_measured(cancelled: asyncio.CancelledError, result: Result | None) -> None:
    """Keep with a cancellation what was measured before it."""
    setattr(cancelled, _MEASURED, result)


def measured_before(cancelled: asyncio.CancelledError) -> Result | None:
    """What was measured before the task was cancelled; None if nothing was.

    `cancelled` is the CancelledError that `test`, `sweep` or a loop over events has raised, or the one that Python
    3.10 raises for those who wait for that task.
    """
    error: BaseException | None = cancelled
    while error is not None and not hasattr(error, _MEASURED):
        error = error.__context__
    return getattr(error, _MEASURED, None)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during `run`. `result` is what was measured until then; None if nothing was."""

    def __init__(self, result: Result | None) -> None:
        self.result = result
        super().__init__()


def run_error(exit_code: int, stderr: str, result: Result | None = None) -> RunError:
    """The exception for an exit code."""
    kinds = {1: MeasurementError, 2: UsageError, 130: InterruptedRunError, 143: InterruptedRunError}
    return kinds.get(exit_code, RunError)(exit_code, stderr, result)


def _meaning(exit_code: int) -> str:
    if exit_code >= 0:
        return MEANINGS.get(exit_code, "the program failed")
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"the program was ended by {name}"
