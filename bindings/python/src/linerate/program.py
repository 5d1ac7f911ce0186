"""Finds the program linerate, starts it, and ends it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from asyncio.subprocess import DEVNULL, PIPE
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from linerate.errors import ProgramNotFoundError

if TYPE_CHECKING:
    from asyncio import StreamReader
    from collections.abc import AsyncIterator, Sequence

# Seconds that an interrupted program has to print what it has measured, before it is killed.
SHUTDOWN_GRACE = 5.0

READ_BYTES = 1 << 16


def find_program() -> str:
    """Return the path of the program: the one that was installed with this package, otherwise that of the PATH.

    Raises ProgramNotFoundError if there is none.
    """
    try:
        installed = metadata.files("linerate") or []
    except metadata.PackageNotFoundError:
        installed = []
    candidates = [Path(str(file.locate())) for file in installed if file.name == "linerate"]
    # `pip install --target` puts programs here.
    candidates.append(Path(__file__).parent.parent / "bin" / "linerate")
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate.resolve())
    found = shutil.which("linerate")
    if found is None:
        message = "the program linerate is neither part of this package nor in a folder of PATH: install the wheel"
        raise ProgramNotFoundError(message)
    return found


class Ended:
    """What an ended program left: its exit code and what it printed."""

    def __init__(self, exit_code: int, stdout: bytes, stderr: bytes) -> None:
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr.decode(errors="replace")


class Running:
    """A running program, whose output arrives line by line.

    It has a session of its own, so that Ctrl-C in a terminal reaches it once: through this package.
    """

    def __init__(self, process: asyncio.subprocess.Process, stdout: StreamReader, stderr: StreamReader) -> None:
        self._process = process
        self._stdout = stdout
        self._stderr = asyncio.ensure_future(stderr.read())
        self._ended: asyncio.Future[Ended] | None = None

    @classmethod
    async def start(cls, arguments: Sequence[str]) -> Running:
        """Start the program."""
        process = await asyncio.create_subprocess_exec(
            *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        stdout, stderr = process.stdout, process.stderr
        if stdout is None or stderr is None:
            message = "a program that is started with pipes has pipes"
            raise AssertionError(message)
        return cls(process, stdout, stderr)

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of its output, which may be of any length."""
        begun = b""
        while chunk := await self._stdout.read(READ_BYTES):
            *complete, begun = (begun + chunk).split(b"\n")
            for line in complete:
                yield line
        if begun:
            yield begun

    def interrupt(self) -> None:
        """Ask it to end, which it does with a partial result."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGINT)

    async def wait(self) -> Ended:
        """Wait until it has ended. It goes on if this task is cancelled."""
        if self._ended is None:
            self._ended = asyncio.ensure_future(self._wait())
        return await asyncio.shield(self._ended)

    async def _wait(self) -> Ended:
        stdout = await self._stdout.read()
        return Ended(await self._process.wait(), stdout, await self._stderr)

    async def end(self) -> Ended:
        """Interrupt it, and kill it if it does not end in time or if this task is cancelled again."""
        self.interrupt()
        try:
            return await asyncio.wait_for(self.wait(), SHUTDOWN_GRACE)
        except (asyncio.TimeoutError, asyncio.CancelledError):
            if self._process.returncode is None:
                self._process.kill()
            return await self.wait()


def run_to_end(arguments: Sequence[str], timeout: float | None = None) -> Ended:
    """Run the program and wait for it, without asyncio.

    Raises EndedEarlyError after `timeout` seconds and at Ctrl-C.
    """
    with subprocess.Popen(arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise EndedEarlyError(_end(process), by_user=False) from error
        except KeyboardInterrupt as error:
            raise EndedEarlyError(_end(process), by_user=True) from error
    return Ended(process.returncode, stdout, stderr)


class EndedEarlyError(Exception):
    """The program was interrupted, at Ctrl-C or after a timeout; `ended` is what it left."""

    def __init__(self, ended: Ended, *, by_user: bool) -> None:
        self.ended = ended
        self.by_user = by_user
        super().__init__()


def _end(process: subprocess.Popen[bytes]) -> Ended:
    """Interrupt it, and kill it if it does not end in time or at another Ctrl-C."""
    process.send_signal(signal.SIGINT)
    try:
        stdout, stderr = process.communicate(timeout=SHUTDOWN_GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        stdout, stderr = process.communicate()
    return Ended(process.returncode, stdout, stderr)
