"""Measure how fast a network is, how fast it could be, and what limits it.

The package contains the program linerate, runs it, and reads what it prints.

    result = linerate.run("server.example", duration=5)
    for flow in result.flows:
        print(flow.name, flow.receiver and flow.receiver.bitrate_bps, flow.verdict and flow.verdict.cause)
"""

from linerate import documents
from linerate.archive import archived, archived_events, check, export
from linerate.documents import CheckDocument, Event
from linerate.errors import (
    FormatError,
    Interrupted,
    InterruptedRunError,
    LinerateError,
    MeasurementError,
    OptionError,
    ProgramNotFoundError,
    RunError,
    RunTimeoutError,
    UsageError,
    measured_before,
)
from linerate.measuring import EventStream, events, run, sweep, test
from linerate.program import find_program
from linerate.reading import read_events, read_result
from linerate.result import Result, SampleRow

__all__ = [
    "CheckDocument",
    "Event",
    "EventStream",
    "FormatError",
    "Interrupted",
    "InterruptedRunError",
    "LinerateError",
    "MeasurementError",
    "OptionError",
    "ProgramNotFoundError",
    "Result",
    "RunError",
    "RunTimeoutError",
    "SampleRow",
    "UsageError",
    "archived",
    "archived_events",
    "check",
    "documents",
    "events",
    "export",
    "find_program",
    "measured_before",
    "read_events",
    "read_result",
    "run",
    "sweep",
    "test",
]
