"""A result, and its samples as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from linerate.documents import ResultDocument
from linerate.options import UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    import polars as pl

    from linerate.documents import PortSample, Sample


class SampleRow(TypedDict):
    """One reading of one sample, with the columns of docs/reference/samples.md."""

    run: str
    """The id of the run."""
    flow: int | None
    """The number of the flow in its run; None for a port while several flows ran."""
    flow_name: str
    """The name of the flow; for a port the flows that ran, joined by `+`."""
    side: str
    """Who counted: `sender`, `receiver` or `port`."""
    port: str | None
    """The port of an emulated network; None otherwise."""
    t_ns: int
    """Start of the interval in nanoseconds, from the first byte of the side, for a port from the start of the run."""
    t_end_ns: int
    """End of the interval, on the same clock."""
    outside: bool
    """Whether the interval is outside the measured part: omitted at the start, or the tail."""
    metric: str
    """The metric, as docs/reference/metrics.md lists them."""
    value: float
    """What was read, in the unit."""
    unit: str | None
    """`bytes`, `bit/s`, `ns`, `ratio`, or `1` for a count; None for a metric that only a newer version knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result(ResultDocument):
    """The result of a run."""

    json: Mapping[str, Any] = field(repr=False)
    """The document as the program printed it, with fields that this version of the package does not know."""

    def rows(self) -> Iterator[SampleRow]:
        """One row for each reading of each sample of flows and ports, merged to the interval of the test.

        What was not measured has no row.
        """
        for flow in self.flows:
            for sample in flow.samples:
                yield from self._rows(sample, flow.flow, flow.name, sample.side, None)
        names = {flow.flow: flow.name for flow in self.flows}
        for port in self.ports:
            flow_name = "+".join(names[number] for number in port.flows if number in names)
            flow_number = port.flows[0] if len(port.flows) == 1 else None
            for interval in port.samples:
                yield from self._rows(interval, flow_number, flow_name, "port", port.port)

    def _rows(
        self, sample: Sample | PortSample, flow: int | None, flow_name: str, side: str, port: str | None
    ) -> Iterator[SampleRow]:
        for metric, value in sample.readings.items():
            yield SampleRow(
                run=self.run.id,
                flow=flow,
                flow_name=flow_name,
                side=side,
                port=port,
                t_ns=sample.start_ns,
                t_end_ns=sample.end_ns,
                outside=bool(sample.outside),
                metric=metric,
                value=value,
                unit=UNITS.get(metric),
            )

    def to_polars(self) -> pl.DataFrame:
        """The rows of `rows` as a polars data frame.

        Raises ImportError if polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise _missing(error) from error
        kinds: dict[str, Any] = {"text": pl.String, "int": pl.Int64, "bool": pl.Boolean, "float": pl.Float64}
        schema = {name: kinds[kind] for name, kind in COLUMNS.items()}
        return pl.DataFrame(list(self.rows()), schema=schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows of `rows` as a pandas data frame.

        Raises ImportError if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise _missing(error) from error
        kinds = {"text": "string", "int": "Int64", "bool": "bool", "float": "float64"}
        frame = pd.DataFrame(list(self.rows()), columns=list(COLUMNS))
        typed: pd.DataFrame = frame.astype({name: kinds[kind] for name, kind in COLUMNS.items()})
        return typed


# The types of the columns.
COLUMNS = {
    "run": "text",
    "flow": "int",
    "flow_name": "text",
    "side": "text",
    "port": "text",
    "t_ns": "int",
    "t_end_ns": "int",
    "outside": "bool",
    "metric": "text",
    "value": "float",
    "unit": "text",
}


def _missing(error: ImportError) -> ImportError:
    return ImportError(f"{error.name} is not installed: pip install 'linerate[{error.name}]'", name=error.name)
