"""The Python examples of the pages, run against a real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("bindings/python/README.md", "docs/guide/python.md")


def examples() -> list[tuple[str, str]]:
    """The blocks of the pages, with where they begin."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, block.start()) + 2
            found.append((f"{page}:{line}", block[1]))
    return found


EXAMPLES = examples()


def test_each_page_has_examples() -> None:
    assert {place.partition(":")[0] for place, _ in EXAMPLES} == set(PAGES)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=[place for place, _ in EXAMPLES])
def test_the_example_runs(example: tuple[str, str], server: str, capsys: pytest.CaptureFixture[str]) -> None:
    place, code = example
    assert "server.example" in code or "linerate.run" not in code, "examples measure server.example"
    code = code.replace("server.example", server)
    # Measure for a shorter time.
    code = re.sub(r"duration=\d\b", "duration=0.5", code)
    # The line of an error is that of the page.
    first = int(place.rpartition(":")[2])
    compiled = compile("\n" * (first - 1) + code, place, "exec")
    exec(compiled, {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out
    assert printed.strip(), "an example prints what it found"
