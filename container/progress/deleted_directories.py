"""Which directories of a job that is gone may be removed from a host.

PURE. The file of a directory (STORE-META, ADJUNCT-META) names the log that fills the store, with
the broker's id of its topic. A directory with the id of a topic that was deleted with the job goes
at once. One with an older id of the same changelog, as of before a reset, goes once it is old. All
others stay, as they may be another job's.
"""

from collections.abc import Collection
from dataclasses import dataclass

from homeport.container.progress.host_directories import IN_USE, DirectoryKind, Verdict

_OF_THE_JOB = "the job was deleted"


@dataclass(frozen=True, slots=True)
class StoreSource:
    """The log that fills the store of a directory, by the directory's own file.

    ``stream``: ``system.stream``, without a partition. ``fault``: why there is none to be read;
    None: there is one.
    """

    stream: str = ""
    topic_id: str = ""
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class DeletedTopics:
    """The topics that were deleted with a job."""

    ids: Collection[str]
    changelogs: Collection[str]


def deleted_verdict(
    source: StoreSource, topics: DeletedTopics, *, is_held: bool, age_ms: int, limit_ms: int
) -> Verdict:
    """Return the verdict on a directory of a deleted job whose newest file is ``age_ms`` old."""
    if is_held:
        return IN_USE
    if source.fault is not None:
        return Verdict(is_removable=False, reason=source.fault)
    if source.topic_id in topics.ids:
        return Verdict(is_removable=True, reason=_OF_THE_JOB)
    if source.stream not in topics.changelogs:
        reason = f"its log {source.stream} was not deleted with the job"
        return Verdict(is_removable=False, reason=reason)
    reason = f"{_OF_THE_JOB}, and its changelog recreated before"
    if age_ms < limit_ms:
        return Verdict(is_removable=False, reason=f"{reason}, but younger than the limit")
    return Verdict(is_removable=True, reason=reason)


def orphan_verdict(
    source: StoreSource, topic_id: str | None, *, is_held: bool, age_ms: int, limit_ms: int
) -> Verdict:
    """Return the verdict on a directory of a job that nothing knows any more.

    ``topic_id``: of the topic that has the name of its log now; None: there is none.
    """
    if is_held:
        return IN_USE
    if source.fault is not None:
        return Verdict(is_removable=False, reason=source.fault)
    if source.topic_id == topic_id:
        return Verdict(is_removable=False, reason=f"its log {source.stream} is still there")
    reason = f"nothing knows its job, and its log {source.stream} is gone"
    if age_ms < limit_ms:
        return Verdict(is_removable=False, reason=f"{reason}, but younger than the limit")
    return Verdict(is_removable=True, reason=reason)


def kind_by(source: StoreSource) -> DirectoryKind:
    """Return the kind of a directory of a job that has no tasks any more."""
    return DirectoryKind.VANISHED_STORE if source.fault is None else DirectoryKind.UNKNOWN
