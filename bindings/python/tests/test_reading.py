"""Documents of this version, of others, and tables of samples."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import linerate
from linerate.documents import Sample, UnknownBody, VerdictBody
from linerate.reading import event_from_json, result_from_json

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
LOG = FIXTURES / "results" / "linerate" / "loopback.jsonl"

COLUMNS = ["run", "flow", "flow_name", "side", "port", "t_ns", "t_end_ns", "outside", "metric", "value", "unit"]


@pytest.fixture(scope="module")
def document(server: str) -> dict[str, Any]:
    """A result as the program prints it."""
    return dict(linerate.run(server, duration=0.3, interval=0.1, upload=True).json)


def test_a_log_is_read() -> None:
    events = list(linerate.read_events(LOG))
    assert [event.seq for event in events] == list(range(len(events)))
    verdicts = [event.body for event in events if isinstance(event.body, VerdictBody)]
    text = [json.loads(line) for line in LOG.read_text().splitlines()]
    expected = [line["body"]["verdict"]["rule"] for line in text if line["body"]["kind"] == "verdict"]
    assert [body.verdict.rule for body in verdicts] == expected


def test_a_newer_program_may_say_more(document: dict[str, Any]) -> None:
    newer = copy.deepcopy(document)
    newer["new"] = {"a": 1}
    newer["flows"][0]["receiver"]["new_bytes"] = 7
    newer["flows"][0]["verdict"]["cause"] = "solar_flare"
    result = result_from_json(json.dumps(newer))
    assert result.flows[0].verdict is not None
    assert str(result.flows[0].verdict.cause) == "solar_flare"
    assert result.flows[0].receiver == result_from_json(json.dumps(document)).flows[0].receiver
    assert result.json["flows"][0]["receiver"]["new_bytes"] == 7


def test_an_event_of_a_newer_kind_has_its_fields() -> None:
    line = {"run": "1", "host": 0, "seq": 0, "at_ns": 1, "new": 1, "body": {"kind": "sunrise", "angle": 2}}
    event = event_from_json(json.dumps(line))
    assert event.body == UnknownBody(kind="sunrise", fields={"kind": "sunrise", "angle": 2})


def test_what_is_absent_is_none(document: dict[str, Any]) -> None:
    less = copy.deepcopy(document)
    flow = less["flows"][0]
    for name in ("sender", "receiver", "latency", "verdict", "ceiling"):
        flow.pop(name, None)
    read = result_from_json(json.dumps(less)).flows[0]
    assert [read.sender, read.receiver, read.latency, read.verdict, read.ceiling] == [None] * 5
    assert read.sizes == []


def test_what_cannot_be_read_is_named(document: dict[str, Any], tmp_path: Path) -> None:
    wrong = copy.deepcopy(document)
    wrong["flows"][0]["receiver"]["bytes"] = "many"
    with pytest.raises(linerate.FormatError, match=r"expected int @ the document\.flows\[0\]\.receiver\.bytes"):
        result_from_json(json.dumps(wrong))
    with pytest.raises(linerate.FormatError, match="this is no JSON"):
        result_from_json("linerate")
    with pytest.raises(linerate.FormatError, match="this is not a result of linerate: its schema is None"):
        result_from_json("{}")
    log = tmp_path / "log.jsonl"
    log.write_text(LOG.read_text().splitlines()[0] + "\n[]\n")
    with pytest.raises(linerate.FormatError, match=r"log\.jsonl:2: this is no JSON object but a list"):
        list(linerate.read_events(log))


def test_other_versions_are_refused_with_a_remedy(document: dict[str, Any]) -> None:
    with pytest.raises(linerate.FormatError, match=r"linerate\.result/99 instead of .*update this package"):
        result_from_json(json.dumps(document | {"schema": "linerate.result/99"}))
    with pytest.raises(linerate.FormatError, match=r"linerate\.event/1 instead of .*`linerate import`"):
        list(linerate.read_events(FIXTURES / "v1" / "tcp.jsonl"))


def test_the_remedy_for_old_logs_works(tmp_path: Path) -> None:
    archive = tmp_path / "archive.sqlite"
    command = [linerate.find_program(), "import", str(FIXTURES / "v1" / "tcp.jsonl"), "--archive", str(archive)]
    subprocess.run(command, check=True, capture_output=True)
    assert any(isinstance(event.body, VerdictBody) for event in linerate.archived_events(archive=archive))


def readings(samples: list[Sample], metric: str) -> list[float]:
    return [sample.readings[metric] for sample in samples if sample.side == "receiver"]


def test_samples_are_rows(document: dict[str, Any]) -> None:
    result = result_from_json(json.dumps(document))
    expected = readings(result.flows[0].samples, "flow.bytes")
    assert len(expected) > 1

    frame = result.to_polars()
    assert frame.columns == COLUMNS
    assert frame.height == len(list(result.rows()))
    received = frame.filter((pl.col("metric") == "flow.bytes") & (pl.col("side") == "receiver"))
    assert received["value"].to_list() == expected
    assert received["unit"].unique().to_list() == ["bytes"]
    assert frame.schema["t_ns"] == pl.Int64
    assert frame["port"].null_count() == frame.height

    table = result.to_pandas()
    assert list(table.columns) == COLUMNS
    chosen = table[(table.metric == "flow.bytes") & (table.side == "receiver")]
    assert chosen["value"].tolist() == expected
    assert str(table.dtypes["flow"]) == "Int64"
    assert pd.isna(table["port"]).all()


def test_samples_of_ports_are_rows(document: dict[str, Any]) -> None:
    sample = {"start_ns": 0, "end_ns": 5, "readings": {"port.bytes": 3, "port.new": 4}}
    port = {"port": "a>s", "flows": [0], "seconds": 1.0, "samples": [sample]}
    result = result_from_json(json.dumps(document | {"ports": [port]}))
    rows = [row for row in result.rows() if row["side"] == "port"]
    assert [(row["port"], row["flow_name"], row["t_end_ns"]) for row in rows] == [("a>s", "upload", 5)] * 2
    assert [row["unit"] for row in rows] == ["bytes", None]
    shared = result_from_json(json.dumps(document | {"ports": [port | {"flows": [0, 0]}]}))
    assert {(row["flow"], row["flow_name"]) for row in shared.rows() if row["port"]} == {(None, "upload+upload")}


def test_the_table_of_a_result_without_samples_has_columns(document: dict[str, Any]) -> None:
    less = copy.deepcopy(document)
    less["flows"] = []
    result = result_from_json(json.dumps(less))
    assert result.to_polars().columns == COLUMNS
    assert list(result.to_pandas().columns) == COLUMNS


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_a_missing_package_is_named(document: dict[str, Any], package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_from_json(json.dumps(document))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package} is not installed: pip install 'linerate\[{package}\]'"):
        getattr(result, f"to_{package}")()


def test_the_columns_are_those_of_the_reference() -> None:
    page = (FIXTURES.parent / "docs" / "reference" / "samples.md").read_text()
    described = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    of_plans = {"point", "trial", "plan_flow"}
    assert [name for name in described if "." not in name and name not in of_plans] == COLUMNS
