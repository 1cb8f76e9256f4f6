"""No process of the product outlives the one that started it, unless a reason stands here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("appmaster", "config", "container", "homeport", "job_coordinator", "local_cluster")
STARTS = {"run", "Popen", "call", "check_call", "check_output"}
OF_THEIR_OWN = {
    "container/launcher/stop_reporter.py": "it writes to Kafka that its launcher's child stopped",
    "container/restore/restore_workers.py": "the worker asks for the signal itself",
    "local_cluster/processes.py": "a daemon stays until `homeport local down`",
}
"""Modules whose processes ask for no signal here, and why."""


def _modules(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """(path, syntax tree) of the product's modules that have one of the words anywhere."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if any(word in text for word in words):
                yield str(file.relative_to(ROOT)), ast.parse(text)


def _starts(tree: ast.Module) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "subprocess"
        and node.func.attr in STARTS
    ]


def test_each_child_is_killed_with_its_parent() -> None:
    """By ``run_child``, or a ``preexec_fn`` beside it."""
    outlive = set()
    for path, tree in _modules("subprocess"):
        for call in _starts(tree):
            if "preexec_fn" not in {keyword.arg for keyword in call.keywords}:
                outlive.add(path)
    assert outlive == set(OF_THEIR_OWN)


def test_no_other_way_to_start_a_process_is_used() -> None:
    """``os.fork``, ``os.system`` and the like: none of them is in the product."""
    found = []
    for path, tree in _modules("multiprocessing", *(name.split(".")[1] for name in FORBIDDEN)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                if name in FORBIDDEN:
                    found.append(f"{path}: {name}")
            if isinstance(node, ast.Import):
                found += [a.name for a in node.names if a.name == "multiprocessing"]
    assert found == []


FORBIDDEN = {
    f"os.{name}"
    for name in ("fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "spawnv")
}
