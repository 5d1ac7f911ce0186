"""Runs `linerate test` as a stream of events, as a coroutine, and as a plain function; and `linerate sweep`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from linerate.arguments import command_line
from linerate.errors import FormatError, Interrupted, OptionError, RunTimeoutError, note_measured, run_error
from linerate.options import SWEEP, TEST
from linerate.program import Ended, EndedEarlyError, Running, find_program, run_to_end
from linerate.reading import event_from_json, read_result, result_from_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from typing_extensions import Unpack

    from linerate.documents import Event
    from linerate.options import SweepOptions, TestOptions
    from linerate.result import Result


class EventStream:
    """The events of a test while it runs."""

    def __init__(self, host: str, options: Mapping[str, object]) -> None:
        if "report" in options:
            message = "events() has the report in EventStream.result, so report is no option here"
            raise OptionError(message)
        self._host = host
        self._options = command_line("test", TEST, options)
        self._running: Running | None = None
        self._interrupted = False
        self.result: Result | None = None
        """The result, once there are no more events; partial if the test was interrupted."""

    def interrupt(self) -> None:
        """End the test early. The last events still come, with the verdict on what was measured."""
        # Another signal would end it before they come.
        if self._running is not None and not self._interrupted:
            self._running.interrupt()
        self._interrupted = True

    def __aiter__(self) -> AsyncIterator[Event]:
        """Start the test."""
        return self._events()

    async def _events(self) -> AsyncGenerator[Event, None]:
        if self._running is not None:
            message = "these events have been iterated over: call events() again for another test"
            raise RuntimeError(message)
        with tempfile.TemporaryDirectory(prefix="linerate-") as folder:
            report = Path(folder, "result.json")
            options = [*self._options, "--json-stream", f"--report={report}"]
            self._running = await Running.start(_command("test", self._host, options))
            try:
                if self._interrupted:
                    self._running.interrupt()
                async for line in self._running.lines():
                    yield event_from_json(line)
                ended = await self._running.wait()
            except asyncio.CancelledError as cancelled:
                note_measured(cancelled, await self._end(report))
                raise
            finally:
                # Also if the caller does not want more events.
                await self._end(report)
            if ended.exit_code != 0 and not self._interrupted:
                raise run_error(ended.exit_code, ended.stderr, self.result)

    async def _end(self, report: Path) -> Result | None:
        if self._running is not None:
            await self._running.end()
        self.result = _written(report)
        return self.result


def events(host: str, **options: Unpack[TestOptions]) -> EventStream:
    """Measure the path to a server, and iterate over what happens while it happens.

    The options are those of `linerate test`. If the loop over the events is left, or its task is cancelled, the
    program is interrupted.

    Raises OptionError for an option that does not exist, and in the loop RunError if the program fails.
    """
    return EventStream(host, options)


async def test(host: str, *, timeout: float | None = None, **options: Unpack[TestOptions]) -> Result:
    """Measure the path to a server.

    The options are those of `linerate test`. If the task is cancelled, the program is interrupted, and
    `measured_before` tells what it has measured. After `timeout` seconds it is that of a RunTimeoutError.

    Raises OptionError for an option that does not exist, and RunError if the program fails.
    """
    return await _measure(_command("test", host, [*command_line("test", TEST, options), "--json"]), timeout)


async def sweep(host: str, *, timeout: float | None = None, **options: Unpack[SweepOptions]) -> Result:
    """Measure latency and throughput over message sizes: the `sizes` and `curve` of the flow in the result.

    The options are those of `linerate sweep`; the rest is as in `test`.
    """
    return await _measure(_command("sweep", host, [*command_line("sweep", SWEEP, options), "--json"]), timeout)


def run(host: str, *, timeout: float | None = None, **options: Unpack[TestOptions]) -> Result:
    """Measure the path to a server, without asyncio.

    As `test`. Ctrl-C interrupts the program, and what it has measured is the `result` of an Interrupted.
    """
    try:
        ended = run_to_end(_command("test", host, [*command_line("test", TEST, options), "--json"]), timeout)
    except EndedEarlyError as early:
        if early.by_user:
            raise Interrupted(_partial(early.ended)) from early
        raise _timed_out(early.ended, timeout) from early
    return _result(ended)


def _command(command: str, host: str, options: list[str]) -> list[str]:
    # A host that looks like an option is a host.
    return [find_program(), command, *options, "--", host]


async def _measure(arguments: list[str], timeout: float | None) -> Result:
    running = await Running.start(arguments)
    try:
        ended = await asyncio.wait_for(running.wait(), timeout)
    except asyncio.TimeoutError as error:
        raise _timed_out(await running.end(), timeout) from error
    except asyncio.CancelledError as cancelled:
        note_measured(cancelled, _partial(await running.end()))
        raise
    return _result(ended)


def _result(ended: Ended) -> Result:
    if ended.exit_code != 0:
        raise run_error(ended.exit_code, ended.stderr, _partial(ended))
    return result_from_json(ended.stdout)


def _partial(ended: Ended) -> Result | None:
    """What a program printed that was interrupted or failed."""
    try:
        return result_from_json(ended.stdout)
    except FormatError:
        return None


def _written(report: Path) -> Result | None:
    """The result in the file that the program writes last."""
    return read_result(report) if report.exists() else None


def _timed_out(ended: Ended, timeout: float | None) -> RunTimeoutError:
    message = f"it had not ended after {timeout} s and was interrupted. {ended.stderr}"
    return RunTimeoutError(ended.exit_code, message, _partial(ended))
