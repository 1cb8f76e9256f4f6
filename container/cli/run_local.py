"""``homeport run-local``: a whole job in one processor, without YARN and ZooKeeper."""

from __future__ import annotations

from homeport.container.cli.run_processor import WorkDir, run
from homeport.container.standalone.stream_processor import StreamProcessor
from homeport.job_coordinator.cli.options import ConfigPath, Overrides, loaded, new_app
from homeport.job_coordinator.kafka.topics import topics_of

app = new_app("Runs a whole job on this machine, with the same stores, commits and exactness.")


@app.command()
def command(config_path: ConfigPath, config: Overrides = None, work_dir: WorkDir = None) -> None:
    """Until SIGTERM or SIGINT, or until every task has finished."""
    job = loaded(config_path, config, topics_of)
    run(StreamProcessor(job, None, work_dir, is_local=True))
