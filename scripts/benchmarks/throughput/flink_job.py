"""The work as statements of Flink SQL, in an environment of its own; prints JSON.

Its state is on RocksDB. Input, state and output are committed with each checkpoint, each second as
Homeport's by default. What it prints counts from its begin.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import Spent
from benchmarks.throughput.work import LIMIT

_SETTINGS = {
    "parallelism.default": "1",
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.incremental": "true",
    "state.backend.type": "rocksdb",
    "taskmanager.memory.managed.size": "256 mb",
    "restart-strategy.type": "none",
}
_MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
}
_GIVEN = """
CREATE TABLE given (k STRING, n BIGINT, kind STRING, price DOUBLE, x STRING) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}', 'topic' = '{given}',
  'properties.group.id' = '{name}', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'raw', 'key.fields' = 'k',
  'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY')"""
_SENT = """
CREATE TABLE sent (k STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{servers}',
  'topic' = '{name}-out', 'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '{name}', 'properties.transaction.timeout.ms' = '60000',
  'key.format' = 'raw', 'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY')"""
_COUNT = """
INSERT INTO sent SELECT k, CAST(COUNT(*) AS STRING) FROM given WHERE n < {limit} GROUP BY k"""
_SUM = "INSERT INTO sent SELECT k, CAST(SUM(n) AS STRING) FROM given GROUP BY k"


def main() -> None:
    """``SERVERS NAME INPUT JARS KIND``: ends when all that is there is committed."""
    spent = Spent(tree_cpu_s)
    servers, name, given, jars, kind = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="homeport-bench-")
    batched = _MINI_BATCH if kind == "count" else {}
    flink = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {
        **_SETTINGS,
        **batched,
        "pipeline.jars": ";".join(jar.as_uri() for jar in sorted(Path(jars).glob("*.jar"))),
        "execution.checkpointing.dir": Path(folder, "checkpoints").as_uri(),
        "state.backend.rocksdb.localdir": f"{folder}/rocksdb",
        "io.tmp.dirs": folder,
        "web.tmpdir": folder,
    }.items():
        flink.get_config().set(key, value)
    try:
        for statement in (_GIVEN, _SENT):
            flink.execute_sql(statement.format(servers=servers, name=name, given=given))
        work = _COUNT.format(limit=LIMIT) if kind == "count" else _SUM
        flink.execute_sql(work).wait()
        print(json.dumps(spent.found()), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
