"""Runs cells from the standard input, a JSON list, as a notebook's kernel does.

IPython's own shell runs each in the running event loop of the main thread. Prints a JSON list of
what each cell showed: its printed text, and the text of its last value.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import json
import sys


async def shown_by(cells: list[str]) -> list[str]:
    """Return what each cell shows; the first error of a cell is raised."""
    shell = importlib.import_module("IPython.core.interactiveshell").InteractiveShell.instance()
    shown = []
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            whole = shell.transform_cell(cell)
            result = await shell.run_cell_async(cell, transformed_cell=whole, store_history=True)
        result.raise_error()
        value = result.result
        forms = {} if value is None else shell.display_formatter.format(value)[0]
        shown.append(forms.get("text/plain", printed.getvalue()))
    return shown


if __name__ == "__main__":
    said = asyncio.run(shown_by(json.load(sys.stdin)))
    json.dump(said, sys.stdout)
