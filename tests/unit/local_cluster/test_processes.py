"""Reading /proc."""

from __future__ import annotations

from local_cluster.processes import ProcessId, ProcessInfo, parse_environment, parse_stat


def test_command_names_with_brackets_do_not_shift_the_fields() -> None:
    """Field 22 is the start time, counted from the last closing bracket."""
    fields = " ".join(str(number) for number in range(5, 53))
    line = f"42 (a) S (b)) R 7 {fields}"
    assert parse_stat(line) == ProcessInfo(id=ProcessId(42, start_time=22), parent=7, state="R")


def test_environment_values_may_contain_equal_signs() -> None:
    """Entries end with a zero byte; those without = are not variables."""
    assert parse_environment(b"A=1=2\0B=\0junk\0") == {"A": "1=2", "B": ""}
