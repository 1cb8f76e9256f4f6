"""``output`` as a dataflow of Bytewax, in an environment of its own; prints JSON.

Its state is saved to SQLite each second, as Homeport commits by default. Its output to Kafka is
at-least-once, and outside of that.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSourceMessage
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import run_main

from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import Spent

_SAVED = timedelta(seconds=1)


def main() -> None:
    """``SERVERS NAME INPUT``: ends where the input does."""
    servers, name, given = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="homeport-bench-"))
    init_db_dir(folder, 1)
    began: list[Spent] = []

    def number(message: KafkaSourceMessage) -> tuple[str, int]:
        if not began:
            began.append(Spent(tree_cpu_s))
        return message.key.decode(), json.loads(message.value)["n"]

    def add(total: int | None, n: int) -> tuple[int, int]:
        after = (total or 0) + n
        return after, after

    flow = Dataflow(name)
    read = kafka.input("read", flow, brokers=[servers], topics=[given], tail=False)
    totals = op.stateful_map("add", op.map("number", read.oks, number), add)
    sent = op.map("sent", totals, lambda pair: KafkaSinkMessage(pair[0].encode(), b"%d" % pair[1]))
    kafka.output("write", sent, brokers=[servers], topic=f"{name}-out")
    try:
        run_main(flow, epoch_interval=_SAVED, recovery_config=RecoveryConfig(str(folder)))
        print(json.dumps(began[0].found()), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
