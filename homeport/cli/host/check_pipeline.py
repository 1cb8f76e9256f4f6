"""``python -m homeport.cli.host.check_pipeline``: does Spark take the job's pipeline?

Run by run-job in a process of its own, as ``check_classes`` is. The configuration comes on
standard input, as JSON: it may hold secrets. Spark starts with the job's own properties and runs
the pipeline over no rows.
"""

import json
import sys
import tempfile
from pathlib import Path

from homeport.cli.job.check_job_model import exit_code
from homeport.config.config import Config
from homeport.container.spark.jvm import java_of_host
from homeport.container.spark.prepared import Loaded, PipelineSettings, start_pipeline
from homeport.container.spark.session import SparkError


def main() -> int:
    """Return 0 and print ``CHECKED`` where nothing is wrong with it; else 1, a line on stderr.

    Where no Spark starts here a line that begins with ``note`` comes before ``CHECKED``.
    """
    config = Config(json.load(sys.stdin))
    with tempfile.TemporaryDirectory(prefix="homeport-check-") as folder:
        settings = PipelineSettings.of(config, Path(folder) / "spark")
        return exit_code(lambda: _check(settings))


def _check(settings: PipelineSettings | None) -> None:
    if settings is None:
        return
    Loaded.of(settings)
    if java_of_host() is None:
        print("\nnote: the pipeline is not checked here, which has no Java: the containers do it")
        return
    try:
        spark = start_pipeline(settings)
        try:
            spark.pipeline(lambda: None)
        finally:
            spark.stop()
    except SparkError as error:
        print(f"\nnote: the pipeline is not checked here ({error}): the containers do it")


if __name__ == "__main__":
    sys.exit(main())
