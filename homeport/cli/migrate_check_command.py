"""``homeport migrate-check``: what becomes of a Samza job's configuration here, key by key."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated

import typer

from homeport.cli.options import AsJson, Overrides, loaded, new_app
from homeport.config.errors import HomeportError
from homeport.config.printable import printable_lines
from homeport.config.settings.samza_job import Finding, Verdict, findings_of
from homeport.job_coordinator.model.wire_form import json_text

app = new_app()

_ORDER = (Verdict.REFUSED, Verdict.CHANGED, Verdict.NO_EFFECT, Verdict.OWN, Verdict.TAKEN)
_TITLES = {
    Verdict.REFUSED: "Refused: run-job ends with this rule",
    Verdict.CHANGED: "Changed: it works differently here",
    Verdict.NO_EFFECT: "No effect here",
    Verdict.OWN: "The job's own: handed to its code as it is",
    Verdict.TAKEN: "Taken as it is",
}


@app.command(name="migrate-check")
def migrate_check(
    path: Annotated[
        str, typer.Argument(metavar="FILE.properties", help="The Samza job's properties file.")
    ],
    config: Overrides = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Reads a Samza job's configuration, and prints for each key what becomes of it here.

    Nothing is changed, and neither Kafka nor YARN is needed. Keys that stop run-job come first.
    Exit code 1 where there is such a key, else 0.
    """
    findings = findings_of(loaded(path, config))
    if as_json:
        print(json_text(findings))
    else:
        print(_text(findings))
    refused = [finding.key for finding in findings if finding.verdict is Verdict.REFUSED]
    if refused:
        sys.stdout.flush()
        raise HomeportError(f"run-job would refuse {', '.join(refused)}: see the lines above")


def _text(findings: tuple[Finding, ...]) -> str:
    counts = Counter(finding.verdict for finding in findings)
    lines = [", ".join(f"{counts[v]} {v.value}" for v in _ORDER if counts[v]) or "no keys"]
    for verdict in _ORDER:
        group = [finding for finding in findings if finding.verdict is verdict]
        if group:
            lines += ["", f"{_TITLES[verdict]} ({len(group)})"]
            lines += [f"  {f.key}{f': {f.about}' if f.about else ''}" for f in group]
    return printable_lines(lines)
