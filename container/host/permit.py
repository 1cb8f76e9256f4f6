"""The permit that a launcher gives its stream container on standard input."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.errors import WireError
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    incarnations_from_json,
    incarnations_to_json,
)
from homeport.job_coordinator.model.json_values import (
    compact_json,
    parse_object,
    required_field,
    required_number,
)


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to run one incarnation; ``fence`` are those that must be unable to write first."""

    incarnation: Incarnation
    model_version: int
    fence: tuple[Incarnation, ...]
    model: str = ""
    """Of a standalone processor's child: the JobModel's JSON; others fetch it from the AM."""

    def to_json(self) -> str:
        """The text on the container's standard input."""
        body = {
            **self.incarnation.to_json(),
            "model_version": self.model_version,
            "fence": incarnations_to_json(self.fence),
            **({"model": self.model} if self.model else {}),
        }
        return compact_json(body).decode()

    @staticmethod
    def from_json(text: str) -> Permit:
        """The permit that ``text`` holds; WireError where it is not one."""
        try:
            body = parse_object(text.encode(), "the permit")
            return Permit(
                Incarnation.from_json(body),
                required_number(body, "model_version"),
                incarnations_from_json(body, "fence"),
                required_field(body, "model", str) if "model" in body else "",
            )
        except WireError:
            raise WireError(f"not a permit: {text[:200]!r}") from None
