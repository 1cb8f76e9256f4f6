"""The status as typed values: what stands for its defaults, and whose words its phases are."""

from __future__ import annotations

import msgspec
import pytest
from golden_values import STATUS

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.config.errors import WireError
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.standalone.state import WorkPhase
from homeport.job_coordinator.status.shape import Phase, ShownStatus


def test_each_phase_of_both_cluster_managers_is_one_of_the_status() -> None:
    """A processor without work is shown as waiting."""
    words = {phase.value for phase in (*ContainerPhase, *WorkPhase)} - {WorkPhase.IDLE.value}
    assert words | {"waiting", "unknown"} == {phase.value for phase in Phase}


def test_a_phase_of_a_later_version_stays_as_it_is() -> None:
    """Shown and passed on; no phase that is known."""
    body = {"containers": [{"processor_id": "0", "phase": "dancing"}]}
    (container,) = ShownStatus.from_json(body).containers
    assert (container.phase.value, str(container.phase)) == ("dancing", "dancing")
    assert container.phase not in {*Phase}
    with pytest.raises(ValueError, match="7"):
        Phase(7)  # type: ignore[arg-type]  # wrong on purpose
    assert ShownStatus.from_json(body).to_json()["containers"][0]["phase"] == "dancing"


def test_a_body_of_another_kind_is_refused() -> None:
    """The line has the path of the field."""
    with pytest.raises(WireError, match=r"the status: .* - at `\$\.containers\[0\]\.phase`"):
        ShownStatus.from_json({"containers": [{"processor_id": "0", "phase": 7}]})


def test_a_container_is_found_by_its_name() -> None:
    """None where there is none."""
    (container,) = STATUS.containers
    assert STATUS.container(container.processor_id) is container
    assert STATUS.container(ProcessorId("9")) is None


def test_the_golden_status_leaves_no_field_at_its_default() -> None:
    """So that a renamed field is seen, whichever it is."""

    def defaults(value: msgspec.Struct, path: str) -> list[str]:
        found = []
        for field in msgspec.structs.fields(type(value)):
            own = getattr(value, field.name)
            if not field.required and own == field.default:
                found.append(f"{path}.{field.name}")
            inner = own if isinstance(own, tuple) else (own,)
            found += [
                each
                for one in inner
                if isinstance(one, msgspec.Struct) and one is not STATUS.rolling_restart
                for each in defaults(one, f"{path}.{field.name}")
            ]
        return found

    assert defaults(STATUS, "status") == []
