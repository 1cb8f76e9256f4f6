"""``count`` as a query of Spark Structured Streaming with its RocksDB state store; prints JSON."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import Spent
from benchmarks.throughput.work import LIMIT

_ROWS = 250_000
"""Of a micro-batch, at most: with 100,000 it was slower."""
_STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": _STATE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def main() -> None:
    """``SERVERS NAME INPUT JARS``: ends when all that is there is committed."""
    servers, name, given, jars = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="homeport-bench-")
    builder = SparkSession.builder.config(
        "spark.jars", ",".join(str(jar) for jar in sorted(Path(jars).glob("*.jar")))
    )
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        brokers = {"kafka.bootstrap.servers": servers}
        rows = (
            spark.readStream.format("kafka")
            .options(**brokers, subscribe=given, startingOffsets="earliest")
            .option("maxOffsetsPerTrigger", _ROWS)
            .load()
        )
        parsed = f.from_json(
            f.decode("value", "UTF-8"), "n LONG, kind STRING, price DOUBLE, x STRING"
        )
        counts = (
            rows.select("key", parsed.alias("parsed"))
            .where(f.col("parsed.n") < LIMIT)
            .groupBy("key")
            .count()
        )
        counted = counts.select("key", f.col("count").cast("string").alias("value")).writeStream
        counted = counted.outputMode("update").trigger(availableNow=True)
        # Once into nothing: the JVM has compiled what the query needs, as that of ours has.
        warm_up = counted.format("noop").option("checkpointLocation", f"{folder}/warm-up")
        warm_up.start().awaitTermination()
        query = counted.format("kafka").options(
            **brokers, topic=f"{name}-out", checkpointLocation=f"{folder}/query"
        )
        spent = Spent(tree_cpu_s)
        query.start().awaitTermination()
        print(json.dumps(spent.found()), flush=True)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
