"""Properties files are read as ``java.util.Properties`` of a real Java reads them."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

from homeport.config.errors import ConfigError
from homeport.config.loading.loader import load

READER = Path(__file__).resolve().parents[1] / "support" / "ReadProperties.java"
PIECES = (
    *("a", "b", "=", ":", " ", "\t", "\f", "#", "!", '"', "\n", "\r", "\r\n", "\x0b", "\x85"),
    *("\u2028", "é", "😀", "\\", "\\\n", "\\\r\n", "\\\n  ", "\\\\", "\\=", "\\ ", "\\t", "\\n"),
    *("\\u0041", "\\u00E9", "\\ud83d\\ude00", "\\u12"),
)
"""Every kind of thing that the format knows; files are made of them at random."""


def _java(files: list[tuple[str, Path]]) -> list[dict[str, str] | None]:
    """What Java reads in each, by its encoding; None: it refuses the file."""
    arguments = [str(word) for pair in files for word in pair]
    done = subprocess.run(
        ["java", "-XX:-UsePerfData", str(READER), *arguments],  # noqa: S607 - Java is on PATH
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _ours(file: Path) -> dict[str, str] | None:
    try:
        return dict(load(f"file://{file}"))
    except ConfigError:
        return None


def _is_whole(text: str) -> bool:
    """Whether no escaped backslash splits a surrogate pair, which only UTF-16 could carry."""
    return "\\\\ud83d" not in text


def test_random_files_are_read_alike(tmp_path: Path) -> None:
    """A thousand files of separators, blanks, comments, continuations, escapes and line ends."""
    chance = random.Random(5)  # noqa: S311 - a seed that repeats
    texts = ["".join(chance.choices(PIECES, k=chance.randint(1, 14))) for _ in range(1000)]
    texts = [text for text in texts if _is_whole(text)]
    files = []
    for number, text in enumerate(texts):
        file = tmp_path / f"{number}.properties"
        file.write_bytes(text.encode())
        files.append(("UTF-8", file))
    read = _java(files)
    assert len(read) == len(files) > 900
    ours = [_ours(file) for _, file in files]
    assert [pair for pair in zip(texts, ours, read, strict=True) if pair[1] != pair[2]] == []
    assert None in read


def test_bytes_that_are_not_utf_8_are_read_as_in_java(tmp_path: Path) -> None:
    """In ISO-8859-1, which is what Java takes bytes for."""
    file = tmp_path / "old.properties"
    file.write_bytes("job.name=größe\nö=\\u00f6 \\\n  ß  ".encode("iso-8859-1"))
    (read,) = _java([("ISO-8859-1", file)])
    assert read == {"job.name": "größe", "ö": "ö ß  "}
    assert _ours(file) == read
