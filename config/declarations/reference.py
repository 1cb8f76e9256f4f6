"""The reference table: every key, and every key of Samza's that has no effect, in three forms.

PURE.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, to_builtins

from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, Liveness
from homeport.config.declarations.samza_keys import ALL, SamzaKey

SHORT = {
    Liveness.LIVE: "live",
    Liveness.RETUNES_CONTAINERS: "live in containers",
    Liveness.RESTARTS_CONTAINERS: "restarts containers",
    Liveness.NEEDS_REDEPLOY: "next deployment",
    Liveness.NEVER_WITH_STATE: "never with state",
}
"""What a change of a key means, in the cells of a table."""
_COLUMNS = ("key", "type", "default", "liveness", "source", "older names", "meaning")
_PIPE = r"\|"
_SAMZA_TITLE = "Keys of Samza's that have no effect here"


class ShownKey(Struct, frozen=True):
    """One key, for a script."""

    key: Annotated[str, Meta(description="its name; <store> and the like stand for a name")]
    type: Annotated[str, Meta(description="what its value must be")]
    unit: Annotated[str | None, Meta(description="of the value")]
    default: Annotated[str | None, Meta(description="where it is not set")]
    fallback: Annotated[str | None, Meta(description="the key that counts where it is not set")]
    liveness: Annotated[str, Meta(description="what a change needs while the job runs")]
    source: Annotated[str, Meta(description="Samza or Homeport")]
    legacy: Annotated[Sequence[str], Meta(description="older names")]
    meaning: Annotated[str, Meta(description="what it does")]


class ShownSamzaKey(Struct, frozen=True):
    """One key of Samza's that has no effect, for a script."""

    key: str
    reason: str
    remedy: str | None


class ShownKeys(Struct, frozen=True):
    """The table, for a script."""

    keys: Annotated[Sequence[ShownKey], Meta(description="each key of a configuration")]
    samza: Annotated[
        Sequence[ShownSamzaKey], Meta(description="Samza's keys that have no effect here")
    ]


class ReferenceFormat(StrEnum):
    """How the table is printed."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def reference(form: ReferenceFormat, part: str = "") -> str:
    """Return the table, or of it the keys whose names hold ``part``; "" where there is none."""
    own = [key for key in keys.ALL if part in key.name or any(part in old for old in key.legacy)]
    samza = [key for key in ALL if part in key.name]
    if not own and not samza:
        return ""
    write: Callable[[Sequence[Key], Sequence[SamzaKey]], str] = {
        ReferenceFormat.TEXT: _text,
        ReferenceFormat.MARKDOWN: _markdown,
        ReferenceFormat.JSON: _json,
    }[form]
    return write(own, samza)


def default_text(key: Key) -> str:
    """Return the default, or the key whose value stands in; "" where there is neither."""
    return key.default_text or (f"that of {key.fallback}" if key.fallback else "")


def type_text(key: Key) -> str:
    """Return the type of the value, with its unit."""
    return f"{key.kind}, {key.unit}" if key.unit else key.kind


def _text(own: Sequence[Key], samza: Sequence[SamzaKey]) -> str:
    lines: list[str] = []
    if own:
        lines.append("What a change means for a running job:")
        lines += [f"    {short}: {liveness.value}" for liveness, short in SHORT.items()]
        lines.append("")
    for key in own:
        default = default_text(key)
        facts = [type_text(key), *([f"default {default}"] if default else []), SHORT[key.liveness]]
        older = f"; older: {', '.join(key.legacy)}" if key.legacy else ""
        lines += [key.name, f"    {key.meaning}", f"    {'; '.join(facts)}; {key.source}{older}"]
    if samza:
        lines += [*([""] if own else []), f"{_SAMZA_TITLE}:", ""]
    for other in samza:
        remedy = f"; refused: {other.remedy}" if other.remedy else ""
        lines += [other.name, f"    {other.reason}{remedy}"]
    return "\n".join(lines)


def _markdown(own: Sequence[Key], samza: Sequence[SamzaKey]) -> str:
    lines: list[str] = []
    if own:
        lines += [_row(_COLUMNS), _row("---" for _ in _COLUMNS)]
    for key in own:
        names = (
            f"`{key.name}`",
            type_text(key),
            default_text(key),
            SHORT[key.liveness],
            key.source,
        )
        lines.append(_row((*names, ", ".join(f"`{old}`" for old in key.legacy), key.meaning)))
    if samza:
        lines += [*([""] if own else []), _row((_SAMZA_TITLE, "why", "refused"))]
        lines.append(_row(("---", "---", "---")))
    lines += [_row((f"`{other.name}`", other.reason, other.remedy)) for other in samza]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', _PIPE) for cell in cells)} |"


def _json(own: Sequence[Key], samza: Sequence[SamzaKey]) -> str:
    body = ShownKeys(
        [
            ShownKey(
                key=key.name,
                type=key.kind,
                unit=key.unit or None,
                default=key.default_text or None,
                fallback=key.fallback or None,
                liveness=key.liveness.name.lower(),
                source=key.source,
                legacy=key.legacy,
                meaning=key.meaning,
            )
            for key in own
        ],
        [ShownSamzaKey(other.name, other.reason, other.remedy or None) for other in samza],
    )
    return json.dumps(to_builtins(body), indent=1, ensure_ascii=False)
