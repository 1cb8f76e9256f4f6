"""What a mixed container has to bear when a neighbour is lost: its memory must suffice for that.

PURE. A container on YARN has a fixed size, and the tasks of a lost one go to the others.

Source: STANDBY, part 3: "all containers need to be over-sized"; part 4.
"""

from homeport.config.declarations import all_keys as keys
from homeport.config.number_text import counted
from homeport.config.settings.memory_rule import STANDBY_ROCKSDB_PART
from homeport.config.settings.sections import ClusterManagerConfig, StandbyConfig, TaskConfig
from homeport.job_coordinator.model.job_model import JobModel


def neighbour_share(model: JobModel, containers_of_host: int = 1) -> str | None:
    """Return the line about the memory of a mixed container; None: no other one can be lost.

    ``containers_of_host``: how many are lost at once, with their host. Tasks count as even.
    """
    config, containers = model.config, len(model.containers)
    standby = StandbyConfig.of(config)
    lost = min(containers_of_host, containers - 1)
    if not (standby.is_mixed and lost):
        return None
    tasks, left = len(model.owners), containers - lost
    now, then = -(-tasks // containers), -(-tasks // left)
    # No place has two replicas of a task.
    kept, kept_then = (
        -(-tasks * min(standby.replication_count, places - 1) // places)
        for places in (containers, left)
    )
    memory_mb = ClusterManagerConfig.of(config).container_memory_mb
    rocksdb_mb = TaskConfig.of(config).memory.rocksdb_mb
    rocksdb_mb -= rocksdb_mb // STANDBY_ROCKSDB_PART
    are_lost = "1 container is" if lost == 1 else f"{lost} containers are"
    return (
        f"{keys.CONTAINER_MEMORY_MB.name} = {memory_mb}: with mixed roles each of {containers} "
        f"containers has {counted(now, 'task')} and {counted(kept, 'standby')}, and, when "
        f"{are_lost} lost with a host, about {counted(then, 'task')} and "
        f"{counted(kept_then, 'standby')}; RocksDB then has {rocksdb_mb // then} MB for each task "
        f"instead of {rocksdb_mb // now}; {-(-memory_mb * then // now)} MB leave each task what "
        "it has now"
    )
