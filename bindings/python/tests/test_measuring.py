"""Tests against a real server, and against programs that misbehave."""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

import pytest

import linerate
from linerate import documents, measuring, program
from linerate.documents import HostBody, ProgressBody, RunEndedBody, RunStartedBody, VerdictBody

NOTHING_LISTENS = "127.0.0.1:1"


def children() -> list[Path]:
    """The processes that this one has started and that have not ended, but for the server."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            is_server = b"\0serve\0" in (stat.parent / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == os.getpid() and not is_server:
            found.append(stat.parent)
    return found


def is_measuring(name: str) -> bool:
    """Whether the archive has seen progress of the run with this name."""
    command = [linerate.find_program(), "export", name, "--format", "jsonl"]
    return b'"progress"' in subprocess.run(command, capture_output=True, check=False).stdout


async def until_it_measures(name: str) -> None:
    while not is_measuring(name):  # noqa: ASYNC110, the archive tells nobody
        await asyncio.sleep(0.1)


@pytest.fixture(autouse=True)
def _no_process_stays() -> object:
    yield
    assert children() == []


def test_a_result_has_what_was_measured(server: str) -> None:
    result = linerate.run(server, duration=0.3, streams=2, name="of python")
    assert (result.schema, result.run.outcome, result.run.name) == ("linerate.result/2", "completed", "of python")
    assert [flow.name for flow in result.flows] == ["download", "upload"]
    for flow in result.flows:
        assert (flow.streams, flow.transport, flow.udp) == (2, "tcp", None)
        assert flow.receiver is not None
        assert flow.receiver.bytes > 0
        assert flow.receiver.bitrate_bps
        assert flow.verdict is not None
        assert flow.latency is not None
        assert flow.latency.idle is not None
        assert isinstance(flow.latency.idle.p50_ns, int)
        assert flow.from_ == result.hosts[0].name
        assert flow.settings is not None
        # The window was left to the kernel.
        assert flow.settings.window is not None
        assert flow.settings.window.asked is None
    assert result.run.spec is not None
    assert result.run.spec.traffic.duration_ns == 300_000_000
    assert result.json["run"]["id"] == result.run.id


def test_options_have_the_names_of_flags_and_of_fields(server: str) -> None:
    short = datetime.timedelta(milliseconds=300)
    result = asyncio.run(linerate.test(server, udp=True, bitrate="20M", upload=True, time=short, no_latency=True))
    (flow,) = result.flows
    assert flow.udp is not None
    assert flow.udp.packets > 0
    assert flow.latency is None
    assert result.run.spec is not None
    assert (result.run.spec.traffic.rate_bps, result.run.spec.traffic.duration_ns) == (20_000_000, 300_000_000)


def test_a_sweep_has_sizes(server: str) -> None:
    result = asyncio.run(linerate.sweep(server, sizes="64,1K", trials=2, time=1))
    (flow,) = result.flows
    assert {64, 1024} <= {size.message_bytes for size in flow.sizes}


def test_events_come_while_the_test_runs(server: str) -> None:
    async def watch() -> None:
        # Long enough for a busy machine to read the first progress before the end.
        stream = linerate.events(server, duration=5, upload=True)
        seen, first = [], True
        async for event in stream:
            if first and isinstance(event.body, ProgressBody):
                first = False
                assert children(), "the program has ended before its progress was seen"
            seen.append(event)
        assert [event.seq for event in seen] == sorted(event.seq for event in seen)
        kinds = [type(event.body) for event in seen]
        assert (kinds[0], kinds[-1]) == (RunStartedBody, RunEndedBody)
        assert {HostBody, ProgressBody, VerdictBody} <= set(kinds)
        assert stream.result is not None
        assert stream.result.run.id == seen[0].run
        with pytest.raises(RuntimeError, match="call events\\(\\) again"):
            await anext(aiter(stream))

    asyncio.run(watch())


def test_an_interrupted_stream_ends_with_a_verdict(server: str) -> None:
    async def watch() -> linerate.Result | None:
        stream = linerate.events(server, duration=60, upload=True)
        bodies = []
        async for event in stream:
            bodies.append(event.body)
            # The first report may come before the first byte.
            if isinstance(event.body, ProgressBody) and event.body.bytes > 0:
                stream.interrupt()
                stream.interrupt()
        ended = bodies[-1]
        assert isinstance(ended, RunEndedBody)
        assert ended.outcome == "interrupted"
        assert any(isinstance(body, VerdictBody) for body in bodies)
        return stream.result

    result = asyncio.run(watch())
    assert result is not None
    assert result.run.outcome == "interrupted"
    assert result.flows[0].receiver is not None
    assert result.flows[0].receiver.total_bytes


def test_a_stream_that_nobody_reads_on_ends_the_program(server: str) -> None:
    async def leave() -> None:
        async for event in linerate.events(server, duration=60):
            if isinstance(event.body, ProgressBody):
                break

    asyncio.run(leave())


def test_a_cancelled_test_has_a_partial_result(server: str) -> None:
    results = []

    async def measure() -> None:
        try:
            await linerate.test(server, duration=60, upload=True, name="cancelled")
        except asyncio.CancelledError as cancelled:
            results.append(linerate.measured_before(cancelled))
            raise

    async def cancel() -> None:
        task = asyncio.ensure_future(measure())
        await until_it_measures("cancelled")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancel())
    (result,) = results
    assert result is not None
    assert result.run.outcome == "interrupted"
    assert result.flows[0].receiver is not None
    assert result.flows[0].receiver.bytes > 0


def test_a_cancelled_stream_has_a_partial_result(server: str) -> None:
    stream = linerate.events(server, duration=60, upload=True, name="cancelled stream")

    async def watch() -> None:
        async for _ in stream:
            pass

    async def cancel() -> None:
        task = asyncio.ensure_future(watch())
        await until_it_measures("cancelled stream")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert stream.result is not None
    assert stream.result.run.outcome == "interrupted"


# asyncio.timeout and asyncio.TaskGroup are new in Python 3.11.
if sys.version_info >= (3, 11):

    def test_timeouts_and_groups_of_asyncio_know_the_cancellation(server: str) -> None:
        async def limited() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await linerate.test(server, duration=60, upload=True)

        async def grouped() -> None:
            async with asyncio.TaskGroup():
                await linerate.test(server, duration=60, upload=True, name="grouped")

        async def cancel() -> None:
            task = asyncio.ensure_future(grouped())
            await until_it_measures("grouped")
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        asyncio.run(limited())
        asyncio.run(cancel())


def test_a_timeout_has_a_partial_result(server: str) -> None:
    with pytest.raises(linerate.RunTimeoutError, match="interrupted") as blocking:
        linerate.run(server, timeout=2, duration=60)
    with pytest.raises(linerate.RunTimeoutError, match="interrupted") as waiting:
        asyncio.run(linerate.test(server, timeout=2, duration=60))
    for timed_out in (blocking.value, waiting.value):
        assert isinstance(timed_out, TimeoutError)
        assert timed_out.result is not None
        assert timed_out.result.run.outcome == "interrupted"


def test_ctrl_c_gives_a_partial_result(server: str) -> None:
    def press() -> None:
        while not is_measuring("ctrl-c"):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(linerate.Interrupted) as interrupted:
        linerate.run(server, duration=60, upload=True, name="ctrl-c")
    assert interrupted.value.result is not None
    assert interrupted.value.result.run.outcome == "interrupted"


def test_somebody_else_interrupts_the_program(server: str) -> None:
    async def interrupt() -> None:
        task = asyncio.ensure_future(linerate.test(server, duration=60, upload=True, name="somebody else"))
        await until_it_measures("somebody else")
        (child,) = children()
        os.kill(int(child.name), signal.SIGTERM)
        await task

    with pytest.raises(linerate.InterruptedRunError, match="SIGTERM") as interrupted:
        asyncio.run(interrupt())
    assert interrupted.value.exit_code == 143
    assert interrupted.value.result is not None


def test_an_unreachable_host_is_an_error_that_says_why() -> None:
    with pytest.raises(linerate.MeasurementError, match="is `linerate serve` running on that host") as failed:
        linerate.run(NOTHING_LISTENS)
    assert failed.value.exit_code == 1
    assert "the measurement failed" in failed.value.meaning
    assert failed.value.result is not None
    assert (failed.value.result.run.outcome, failed.value.result.flows) == ("failed", [])


def test_an_unreachable_host_is_an_error_of_the_stream() -> None:
    async def watch() -> list[object]:
        return [event.body async for event in linerate.events(NOTHING_LISTENS)]

    with pytest.raises(linerate.MeasurementError, match="Connection refused"):
        asyncio.run(watch())


def test_options_that_do_not_exist_are_named() -> None:
    with pytest.raises(linerate.OptionError, match=r"no option stream; did you mean streams\?"):
        linerate.run(NOTHING_LISTENS, stream=4)  # type: ignore[call-arg]
    with pytest.raises(linerate.OptionError, match="`linerate test --help` lists the options"):
        linerate.events(NOTHING_LISTENS, wxyz=1)  # type: ignore[call-arg]


def test_values_that_an_option_cannot_have_are_named() -> None:
    with pytest.raises(linerate.OptionError, match="udp is True or False, not 'yes': --udp"):
        linerate.run(NOTHING_LISTENS, udp="yes")  # type: ignore[arg-type]
    with pytest.raises(linerate.OptionError, match="streams needs a value, not True"):
        linerate.run(NOTHING_LISTENS, streams=True)
    with pytest.raises(linerate.OptionError, match="streams and parallel are the same option, --parallel"):
        linerate.run(NOTHING_LISTENS, streams=1, parallel=2)
    with pytest.raises(linerate.OptionError, match="window is a list"):
        linerate.run(NOTHING_LISTENS, window=[1])  # type: ignore[arg-type]


def test_the_program_says_which_values_make_no_sense() -> None:
    with pytest.raises(linerate.UsageError, match="invalid value 'fast' for '--bitrate <RATE>'") as refused:
        linerate.run(NOTHING_LISTENS, bitrate="fast")
    assert refused.value.exit_code == 2
    assert refused.value.result is None
    with pytest.raises(linerate.UsageError, match="'--upload' cannot be used with '--download'"):
        asyncio.run(linerate.test(NOTHING_LISTENS, upload=True, download=True))


def test_a_host_is_never_an_option() -> None:
    with pytest.raises(linerate.MeasurementError, match="--help"):
        linerate.run("--help")


def test_no_shell_reads_the_arguments(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    with pytest.raises(linerate.RunError):
        linerate.run(f"$(touch {witness}); touch {witness}")
    assert not witness.exists()


@pytest.fixture
def hung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that never ends, and ignores SIGINT."""
    script = tmp_path / "hung"
    script.write_text("#!/bin/sh\ntrap '' INT\nexec sleep 600\n")
    script.chmod(0o755)
    monkeypatch.setattr(measuring, "find_program", lambda: str(script))
    monkeypatch.setattr(program, "SHUTDOWN_GRACE", 0.2)


@pytest.mark.usefixtures("hung")
def test_a_hung_program_is_killed() -> None:
    with pytest.raises(linerate.RunTimeoutError, match="SIGKILL") as killed:
        asyncio.run(linerate.test("host", timeout=0.5))
    assert killed.value.result is None
    with pytest.raises(linerate.RunTimeoutError, match="SIGKILL"):
        linerate.run("host", timeout=0.5)


@pytest.mark.usefixtures("hung")
def test_a_hung_program_is_killed_when_its_stream_is_cancelled() -> None:
    async def watch() -> None:
        async for _ in linerate.events("host"):
            pass

    async def cancel() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(watch(), 0.5)

    asyncio.run(cancel())


def test_a_missing_program_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "files", lambda _: [])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(linerate.ProgramNotFoundError, match="install the wheel"):
        linerate.run("host")


def test_a_check_judges_figures_and_files(server: str, tmp_path: Path) -> None:
    typed = linerate.check(rate="966.5M", link="1G", mtu=1500)
    assert (typed.verdict, typed.counts.impossible) == ("impossible", 1)
    linerate.run(server, duration=0.3, report=tmp_path / "result.json")
    read = linerate.check(tmp_path / "result.json")
    assert read.inputs[-1].name == str(tmp_path / "result.json")
    assert read.counts.impossible == 0
    with pytest.raises(linerate.RunError, match="nowhere"):
        linerate.check("nowhere.json")


def test_the_archive_has_the_run(server: str) -> None:
    result = linerate.run(server, duration=0.3, upload=True)
    again = linerate.archived(result.run.id)
    assert again == result
    events = list(linerate.archived_events(result.run.id))
    assert isinstance(events[0].body, documents.RunStartedBody)
    assert linerate.export(result.run.id, "parquet").startswith(b"PAR1")
    with pytest.raises(linerate.RunError, match="nothere"):
        linerate.archived("nothere")


def test_the_command_is_installed_beside_the_interpreter() -> None:
    assert Path(linerate.find_program()) == Path(sys.executable).parent / "linerate"
