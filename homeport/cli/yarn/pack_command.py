"""``homeport pack``: the environment that travels to the nodes."""

import os
from pathlib import Path

from homeport.appmaster.environment.class_data import own_java
from homeport.appmaster.environment.pack import pack as packed
from homeport.cli.options import described, new_app, note
from homeport.job_coordinator.own_folders import cache_folder

app = new_app()


@app.command()
@described(
    job="Folder of the job's code; its requirements.txt is installed.",
    extra="Extra of homeport, as avro; repeatable.",
)
def pack(*, job: Path | None = None, extra: list[str] | None = None) -> None:
    """Packs homeport, all that it requires, and what a job requires, into one archive.

    Prints its path, for yarn.python.archive: it is unpacked once on each node, which needs Java
    and the same minor version of Python, and nothing else. It has what is installed where this
    command runs; versions in requirements.txt should be exact. Packed again without a change, it
    is there already. With Java here, it has Spark's class-data archive, which hosts with the same
    build of Java use: Spark starts in half the time there.
    """
    java = own_java(os.environ)
    found = packed(cache_folder(os.environ), job, frozenset(extra or ()), note, java)
    print(found.archive)
