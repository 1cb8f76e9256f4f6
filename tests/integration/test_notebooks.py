"""Jobs in the cells of a notebook: IPython runs the page's, and those that could go wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHELL = ROOT / "tests" / "support" / "notebook_shell.py"
_BLOCK = re.compile(r"^```(python)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEAD = """
from dataclasses import dataclass
import asyncio
from homeport import Job, StreamTask
from homeport.testing import TestRunner
"""
TYPED = """
@dataclass
class Order:
    amount: float

job = Job("typed")
orders = job.input("orders", key=str, value=Order)
totals = job.output("totals", key=str, value=Order)

@job.each(orders)
async def add(name: str, order: Order) -> None:
    await asyncio.sleep(0)
    totals.send(name, Order(order.amount * {factor}))

with TestRunner(job) as runner:
    runner.send("orders", key="a", value=Order(2.0))
    runner.run()
    print(runner.output("totals")[0].value)
"""
WRONG = """
class Wrong(StreamTask):
    def process(self, message):
        pass

from homeport.config.errors import HomeportError
try:
    TestRunner({"task.inputs": "kafka.in"}, task=Wrong)
except HomeportError as error:
    print(error)
"""
SIDE_BY_SIDE = """
class Slow(StreamTask):
    def process(self, message, context):
        context.send("out", message.value, message.key)

keys = {"task.inputs": "kafka.in", "task.max.concurrency": "4"}
with TestRunner(keys, task=Slow) as runner:
    for number in range(8):
        runner.send("in", key=b"%d" % number, value=b"x")
    print(runner.run(), len(runner.output("out")))
"""


def shown_by(*cells: str) -> list[str]:
    """What each cell shows, with no word of any fault beside it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SHELL)],
        input=json.dumps(cells),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_the_cells_of_the_page_show_what_it_says() -> None:
    """All of them, in one notebook; a block without a language is what the cell before shows."""
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    blocks = _BLOCK.findall(page)
    cells = [text for language, text in blocks if language]
    shown = shown_by(*cells)
    found = iter(shown)
    expected: list[tuple[str, str]] = []
    for language, text in blocks:
        if language:
            expected.append((next(found), ""))
        else:
            expected[-1] = (expected[-1][0], text)
    pairs = [(one.strip("\n"), text.strip("\n")) for one, text in expected if text]
    assert len(pairs) == 5
    assert [one for one, _ in pairs] == [text for _, text in pairs]


def test_what_a_cell_defines_works_as_in_a_module() -> None:
    """Types of values, coroutines beside the kernel's loop, threads; a cell that is run again."""
    typed = [TYPED.format(factor=factor) for factor in (2, 3)]
    two, three, wrong, threads = shown_by(HEAD, *typed, WRONG, SIDE_BY_SIDE)[1:]
    assert (two, three) == ("Order(amount=4.0)\n", "Order(amount=6.0)\n")
    assert wrong == (
        "task.class = '__main__:Wrong': its process is not to be called with (message, context) or "
        "(message, collector, coordinator): too many positional arguments; write def process(self, "
        "message, context)\n"
    )
    assert threads == "8 8\n"
