"""homeport config show: the keys of a job's file, named in either way."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.cli.job.config_commands import app
from homeport.cli.usage import run_app
from homeport.config.errors import ConfigError


@pytest.mark.parametrize("named", ["{}", "--config-path={}"])
def test_a_file_is_named_by_itself_or_by_the_option(
    named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys of the command line are laid over it."""
    path = tmp_path / "my.properties"
    path.write_text("job.name=a\nmy.password=b\n", encoding="utf-8")
    run_app(app, ["show", named.format(path), "--config=my.key=c"])
    assert capsys.readouterr().out.splitlines() == [
        "job.name=a",
        "my.key=c",
        "my.password=********",
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "--config-path is missing: the job's file is required; write config show "),
        (["a", "--config-path=b"], "--config-path = 'b': a names a file too; write config show "),
    ],
)
def test_a_file_is_named_once(words: list[str], line: str) -> None:
    """Neither never nor twice."""
    with pytest.raises(ConfigError) as refused:
        run_app(app, ["show", *words])
    assert str(refused.value) == f"{line}daily_totals.py"
