"""The work as an application of Quix Streams, in an environment of its own; prints JSON.

Its state has a changelog, and input, state and output are committed in one transaction, each second
as Homeport's by default.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from typing import Any

from quixstreams import Application

from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import Spent
from benchmarks.throughput.work import LIMIT

_COMMIT_S = 1.0


def main() -> None:
    """``SERVERS NAME INPUT OUTPUTS KIND``: ends after so many outputs of its functions."""
    servers, name, given, outputs, kind = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="homeport-bench-")
    app = Application(
        broker_address=servers,
        consumer_group=name,
        auto_offset_reset="earliest",
        commit_interval=_COMMIT_S,
        state_dir=folder,
        processing_guarantee="exactly-once",
        loglevel="WARNING",
    )
    began: list[Spent] = []

    def added(state: Any, number: int) -> int:  # noqa: ANN401 - as the library's
        if not began:
            began.append(Spent(tree_cpu_s))
        total: int = state.get("total", 0) + number
        state.set("total", total)
        return total

    frame = app.dataframe(app.topic(given, value_deserializer="json"))
    if kind == "output":
        frame = frame.apply(lambda value, state: added(state, value["n"]), stateful=True)
        frame.to_topic(app.topic(f"{name}-out", value_serializer="json"))
    else:
        frame = frame.filter(lambda value: value["n"] < LIMIT)
        frame = frame.apply(lambda _, state: added(state, 1), stateful=True)
    try:
        app.run(count=int(outputs), collect=False)
        print(json.dumps(began[0].found()), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
