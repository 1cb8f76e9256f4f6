"""The permit that a launcher gives its stream container on standard input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

from homeport.config.config import LONG_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.model.wire_form import body_of, value_of


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to run one incarnation, after those of ``fence`` can no longer write."""

    incarnation: Incarnation
    model_version: Annotated[int, msgspec.Meta(ge=0, le=LONG_MAX)]
    fence: tuple[Incarnation, ...]
    model: str | None = None
    """For a standalone processor's child, the JobModel's JSON; others fetch it from the AM."""

    def to_json(self) -> str:
        """Return the text on the container's standard input."""
        return compact_json(body_of(self, flat="incarnation")).decode()

    @staticmethod
    def from_json(text: str) -> Permit:
        """Return the permit of ``text``; WireError where it is not one."""
        try:
            body = parse_object(text.encode(), "the permit")
            return value_of(Permit, body, "the permit", flat="incarnation")
        except WireError:
            raise WireError(f"not a permit: {text[:200]!r}") from None
