"""``homeport migrate-check``: what becomes of a Samza job's configuration here, key by key."""

import sys
from collections import Counter
from collections.abc import Iterator

import typer

from homeport.cli.options import AsJson, Overrides, described, loaded, new_app, print_answer
from homeport.config.errors import HomeportError
from homeport.config.settings.samza_job import Finding, Verdict, findings_of

app = new_app()

_TITLES = {
    Verdict.REFUSED: "Refused: run-job ends with this rule",
    Verdict.CHANGED: "Changed: it works differently here",
    Verdict.NO_EFFECT: "No effect here",
    Verdict.OWN: "The job's own: handed to its code as it is",
    Verdict.TAKEN: "Taken as it is",
}
"""In the order in which they are printed."""


@app.command(name="migrate-check")
@described(path=typer.Argument(metavar="FILE.properties", help="The Samza job's properties file."))
def migrate_check(path: str, config: Overrides = None, *, as_json: AsJson = False) -> None:
    """Reads a Samza job's configuration, and prints for each key what becomes of it here.

    Nothing is changed, and neither Kafka nor YARN is needed. Keys that stop run-job come first.
    Exit code 1 where there is such a key, else 0.
    """
    findings = findings_of(loaded(path, config))
    print_answer(findings, _lines(findings), as_json=as_json)
    refused = [finding.key for finding in findings if finding.verdict is Verdict.REFUSED]
    if refused:
        sys.stdout.flush()
        raise HomeportError(f"run-job would refuse {', '.join(refused)}: see the lines above")


def _lines(findings: tuple[Finding, ...]) -> Iterator[str]:
    counts = Counter(finding.verdict for finding in findings)
    yield ", ".join(f"{counts[v]} {v.value}" for v in _TITLES if counts[v]) or "no keys"
    for verdict, title in _TITLES.items():
        group = [finding for finding in findings if finding.verdict is verdict]
        if group:
            yield from ("", f"{title} ({len(group)})")
            yield from (f"  {f.key}{f': {f.about}' if f.about else ''}" for f in group)
