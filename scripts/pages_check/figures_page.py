"""The pages of recorded figures: an index, and one page for each benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.recorded import NAME, PAGES, ROOT, Figure, Figures, Recorded, read

INDEX = f"{PAGES}.md"
_BEGIN = f"<!-- Written by scripts/pages --write from {NAME}. -->\n"
_INDEX = f"""\
{_BEGIN}
# Recorded figures

`scripts/bench SUBJECT --record` keeps the figures of a run here, with date, commit, and the speed
and load of the machine; a later run of a section replaces it. [Benchmarks](benchmarks.md) has the
figures that were chosen and explained by hand.
"""
_VERDICTS = {"missed": "**missed**"}


def pages() -> Mapping[str, str]:
    """{path from the root: text}."""
    return pages_of(read(ROOT))


def write() -> None:
    """Write the pages of what is kept."""
    for page, text in pages().items():
        path = ROOT / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def pages_of(figures: Figures) -> dict[str, str]:
    """The same of these figures."""
    lines = [
        f"- [`{name}`]({PAGES.removeprefix('docs/')}/{name}.md): {', '.join(sections)}"
        for name, sections in figures.items()
    ]
    found = {INDEX: "\n".join([_INDEX, *lines, ""])}
    for name, sections in figures.items():
        found[f"{PAGES}/{name}.md"] = "\n".join(_page(name, sections))
    return found


def _page(name: str, sections: Mapping[str, Recorded]) -> Iterator[str]:
    yield _BEGIN
    yield f"# Figures of `scripts/bench {name}`"
    for section, run in sections.items():
        yield f"\n## {section}\n"
        yield f"{run.title}. `{run.command}`, {run.date}, commit {run.commit}."
        yield f"At the begin: {run.begin}; at the end: {run.end}.\n"
        yield "| what | reached | target | |"
        yield "| --- | --- | --- | --- |"
        yield from map(_line, run.rows)
    yield ""


def _line(row: Figure) -> str:
    cells = (row.what, row.value, row.target, _VERDICTS.get(row.verdict, row.verdict))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
