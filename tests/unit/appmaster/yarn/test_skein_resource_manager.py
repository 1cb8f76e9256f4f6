"""What Skein tells of a container's end, and YARN is told of a job's."""

from __future__ import annotations

from homeport.appmaster.yarn.skein_resource_manager import shortened, story_of_end


def test_long_diagnostics_keep_what_happened_and_the_error() -> None:
    """The first words are the allocator's story, the last ones the error; the middle may go."""
    told = shortened("processor 0 failed 3 times\n" + "x" * 20_000 + "\nValueError: 7")
    assert len(told) <= 8000
    assert told.startswith("processor 0 failed 3 times\n")
    assert "\n...\n" in told
    assert told.endswith("ValueError: 7")
    assert shortened("shut down on request") == "shut down on request"


def test_memory_is_a_fault_of_the_containers_own() -> None:
    """The story names the limit and the key; any other end is nobody's fault by itself."""
    for killed in (
        "1.1 GB of 512 MB physical memory used",
        "Container killed by YARN for exceeding memory limits",
    ):
        story = (
            f"YARN killed it for its memory: {killed}; "
            "cluster-manager.container.memory.mb says how much"
        )
        assert story_of_end(f"{killed}.\n") == (story, True)
    other = "Container failed during execution, see logs for more information."
    assert story_of_end(other) == (other.rstrip("."), False)
