"""What is done with the text of a statement before Spark has it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from homeport.config.errors import ConfigError
from homeport.container.spark.sql_text import load_sql, mentioned, quoted

KEY = "task.pipeline.sql"


def test_a_value_is_a_statement_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is looked for where modules are, in the same order."""
    assert load_sql(KEY, " SELECT 1 ; ") == "SELECT 1"
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "a.sql").write_text(f"\ufeffSELECT {number};\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
    assert load_sql(KEY, "file:a.sql") == "SELECT 2"
    package = tmp_path / "package.zip"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("deep/z.sql", "SELECT 3")
    monkeypatch.syspath_prepend(str(package))
    assert load_sql(KEY, "file:deep/z.sql") == "SELECT 3"
    (tmp_path / "2" / "b.sql").write_bytes(b"SELECT '\xff'")
    for value, rule in (
        ("file:", "must name a file"),
        ("file:/etc/passwd", "must name a file"),
        ("file:../2/a.sql", "must name a file"),
        ("file:c.sql", "there is no file 'c.sql'"),
        ("file:b.sql", "cannot be read"),
        ("/* nothing */ ;", "no statement"),
    ):
        with pytest.raises(ConfigError, match=rule):
            load_sql(KEY, value)


def test_a_name_in_backquotes_may_hold_anything() -> None:
    """Tables that may be meant are found under it."""
    assert quoted("late-orders.`x`") == "`late-orders.``x```"
    names = ["input", "orders", "late.`x`"]
    assert mentioned("SELECT * FROM Orders, `late.``x```", names) == ["orders", "late.`x`"]
