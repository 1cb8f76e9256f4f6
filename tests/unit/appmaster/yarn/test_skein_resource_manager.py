"""What Skein reports of a container's end, and what YARN receives at a job's end."""

from __future__ import annotations

import pytest

from homeport.appmaster.yarn.skein_resource_manager import reported_end, shortened


def test_long_diagnostics_keep_what_happened_and_the_error() -> None:
    """The first words are the allocator's story, the last ones the error; the middle may go."""
    stated = shortened("processor 0 failed 3 times\n" + "x" * 20_000 + "\nValueError: 7")
    assert len(stated) <= 8000
    assert stated.startswith("processor 0 failed 3 times\n")
    assert "\n...\n" in stated
    assert stated.endswith("ValueError: 7")
    assert shortened("shut down on request") == "shut down on request"


def test_memory_is_a_fault_of_the_containers_own() -> None:
    """The story names the limit and the key; any other end is no fault by itself."""
    for killed in (
        "1.1 GB of 512 MB physical memory used",
        "Container killed by YARN for exceeding memory limits",
    ):
        story = (
            f"YARN killed it for its memory: {killed}; "
            "cluster-manager.container.memory.mb says how much"
        )
        assert reported_end(f"{killed}.\n") == (story, True, False)
    other = "Container failed during execution, see logs for more information."
    assert reported_end(other) == (other.rstrip("."), False, False)


@pytest.mark.parametrize(
    "words",
    [
        "Container released on a *lost* node",
        "Container expired since it was unused",
        "Most of the disks failed. 1/1 local-dirs have errors: [ /data : No space left ]",
        "Container preempted by scheduler",
    ],
)
def test_a_preempted_container_is_distinguished_from_a_failed_one(words: str) -> None:
    """Lost, expired, preempted, disks failed: YARN's words for -100, -101 and -102."""
    assert reported_end(words) == (words, False, True)
    assert not reported_end(f"Container exited: {words}").is_taken_back
    assert not reported_end("Container killed by the ResourceManager").is_taken_back
