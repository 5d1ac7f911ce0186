"""Reads a table of samples by pyarrow and by DuckDB, and compares both with the event logs that it is made from.

usage: read_parquet.py TABLE LOG LOG...

The first log is that of the run or plan, whose digest the table names. Prints what the table has as JSON.
"""

import hashlib
import json
import sys

import duckdb
import pyarrow.parquet

KEYS = ["run", "flow", "side", "t_ns", "t_end_ns", "outside", "metric", "value"]


def logged(paths):
    """The readings of the samples in event logs."""
    for path in paths:
        for line in open(path, encoding="utf-8"):
            event = json.loads(line)
            body = event["body"]
            if body["kind"] != "sample":
                continue
            sample = body["sample"]
            for metric, value in sample["readings"].items():
                yield (
                    event["run"], body["flow"], sample["side"], sample["start_ns"], sample["end_ns"],
                    sample.get("outside", False), metric, float(value),
                )


path, logs = sys.argv[1], sys.argv[2:]
expected = sorted(logged(logs))
table = pyarrow.parquet.read_table(path)
by_pyarrow = sorted(zip(*(table[key].to_pylist() for key in KEYS)))
assert by_pyarrow == expected, (len(by_pyarrow), len(expected), set(by_pyarrow) ^ set(expected))
by_duckdb = sorted(duckdb.sql(f"SELECT {', '.join(KEYS)} FROM '{path}'").fetchall())
assert by_duckdb == expected, (len(by_duckdb), len(expected), set(by_duckdb) ^ set(expected))
metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
metadata_of_duckdb = duckdb.sql(f"SELECT decode(key), decode(value) FROM parquet_kv_metadata('{path}')").fetchall()
assert dict(metadata_of_duckdb) == metadata, metadata_of_duckdb
digest = hashlib.sha256(open(logs[0], "rb").read()).hexdigest()
assert metadata["linerate.log_sha256"] == digest, (metadata, digest)


def distinct(column):
    """The values of a column that are not null."""
    query = f"SELECT DISTINCT {column} FROM '{path}' WHERE {column} IS NOT NULL ORDER BY ALL"
    return [value for (value,) in duckdb.sql(query).fetchall()]


print(json.dumps({
    "rows": len(expected),
    "metadata": metadata,
    "columns": {field.name: str(field.type) for field in table.schema},
    "plan_flows": distinct("plan_flow"),
    "points": distinct("point"),
    "trials": distinct("trial"),
}))
