"""The progress of an upgrade, in lines for the user. PURE."""

from collections.abc import Iterator

from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState

SHOWN = 12
"""Characters of a package's name for people."""

NEXT_DEPLOYMENT = "yarn.package.path must name it for the next deployment"


def in_brief(package: str | None) -> str:
    """Return the name of a package for people; None: the submission's."""
    return "that of the submission" if package is None else package[:SHOWN]


def steps(before: UpgradeState | None, after: UpgradeState, count: int) -> Iterator[str]:
    """Yield a line for each change from one record to the next.

    ``before``: None: no record of this upgrade was seen. ``count``: the number of processors.
    """
    known = before if before is not None and before.id == after.id else None
    if known is None:
        yield f"upgrade to package {in_brief(after.package)} from {in_brief(after.previous)}"
    if after.reason and (known is None or known.reason != after.reason):
        yield f"goes back to package {in_brief(after.previous)}: {after.story}"
    given = () if known is None else known.given
    for processor_id in after.given:
        if processor_id not in given:
            number = after.given.index(processor_id) + 1
            yield f"{processor_id}: gets the package ({number} of {count})"
    is_over = known is not None and known.current is not None and after.current != known.current
    if known is not None and is_over and after.phase is not UpgradePhase.BACK:
        what = "package from before" if known.phase is UpgradePhase.BACK else "package"
        yield f"{known.current}: runs the {what}"
    for processor_id in reversed(given):
        if processor_id not in after.given:
            yield f"{processor_id}: gets the package from before"


def end(state: UpgradeState) -> str:
    """Return the last line of an upgrade that has ended."""
    if state.phase is UpgradePhase.DONE:
        return f"done: all run package {in_brief(state.package)}; {NEXT_DEPLOYMENT}"
    return f"gone back to package {in_brief(state.previous)}: {state.story}"
