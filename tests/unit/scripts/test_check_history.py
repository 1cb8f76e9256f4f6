"""The outside judge: a green history, and for each rule a history that breaks it."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from another_user import open_folder, unprivileged
from check_history.judge import main
from check_history.reading import Event, read_jobs

WHOLE: dict[str, Any] = {"phases_ms": {"detect": 3, "restore": 97}, "total_ms": 100}
BOOTED_MS = 1_700_000_000_000
TASK = "Partition 0"
INPUT = "kafka.in.0"
OWNERS = "a task's owners have stopped before the next is permitted"
EPOCHS = "epochs grow, each used by one process"
LOCALITIES = "localities are true"
ONE_WRITER = "one writer per task at a time"
STEPS = "the steps of a start come in their order"
ONLY_CHANGED = "a new JobModel stops only the containers that it changes"
THEIR_TASKS = "containers have the tasks of their JobModel"


class History:
    """A history as the processes of a job write it; ``at`` is in ms of the boot clock.

    ``said``: the last words of check-history; ``torn``: the begin of a line at each file's end.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.said, self.torn = folder, "", ""
        self.lines: dict[Path, list[str]] = {}
        self.skews: dict[str, int] = {}

    def event(
        self,
        at: int,
        role: str,
        name: str,
        key: tuple[str, int],
        host: str = "nm1",
        **more: Any,  # noqa: ANN401 - fields of JSON
    ) -> None:
        """One line of the process that has this role for this incarnation on this host."""
        pid = more.pop("pid", key[1] * 10 + int(key[0][0]))
        line = {
            "ts_ms": BOOTED_MS + at + self.skews.get(host, 0),
            "boot_ms": at - self.skews.get(host, 0),
            "host": host,
            "pid": pid,
            "role": role,
            "event": name,
            "processor_id": key[0],
            "epoch": key[1],
            **more,
        }
        file = f"{role}-{host}-{key[0]}-{key[1]}-{pid}.jsonl"
        path = self.folder / host / "job-1" / ".history" / file
        self.lines.setdefault(path, []).append(json.dumps(line))

    def start(
        self,
        at: int,
        key: tuple[str, int],
        host: str = "nm1",
        without: str = "",
        **more: Any,  # noqa: ANN401 - fields of JSON
    ) -> None:
        """All steps of a start, 1 ms apart, from ``at``; ``more``: fences, host_said, tasks."""
        tasks = more.get("tasks", [TASK])
        fences = [{"processor_id": p, "epoch": e} for p, e in more.get("fences", ())]
        found = more.get("host_said", host)
        steps: list[tuple[str, str, dict[str, Any]]] = [
            ("driver", "permit-granted", {"resource": f"c{key[1]}", "on_host": host, "pid": 1}),
            ("launcher", "permit-received", {}),
            ("launcher", "child-started", {}),
            ("container", "fenced", {"fenced": fences, "tasks": tasks, **more.get("roles", {})}),
            *(("container", "restore-started", {"task": task}) for task in tasks),
            *(("container", "restore-finished", {"task": task}) for task in tasks),
            ("container", "locality-written", {"tasks": tasks, "locality": found}),
            ("container", "started", {}),
        ]
        for number, (role, name, fields) in enumerate(steps):
            if name != without:
                self.event(at + number, role, name, key, host, **fields)

    def follow(self, at: int, epoch: int, host: str = "nm1", **more: Any) -> None:  # noqa: ANN401 - fields of JSON
        """The start of an epoch of processor 0 that fences the one before."""
        self.start(at, ("0", epoch), host, fences=[("0", epoch - 1)], **more)

    def transaction(
        self,
        at: int,
        key: tuple[str, int],
        offsets: tuple[int, int],
        host: str = "nm1",
        *,
        is_known: bool = True,
        task: str = TASK,
        input_: str = INPUT,
    ) -> None:
        """A transaction of the records from the first to the last offset; it takes 1 ms."""
        spans = {task: {input_: list(offsets)}}
        self.event(at, "container", "transaction-ending", key, host, offsets=spans)
        if is_known:
            self.event(at + 1, "container", "transaction-committed", key, host)

    def stop(self, at: int, key: tuple[str, int], host: str = "nm1") -> None:
        """The launcher has waited for the container."""
        self.event(at, "launcher", "child-stopped", key, host, cause="killed")

    def revoked(self, at: int, key: tuple[str, int]) -> None:
        """The keeper has reported to the driver that the lease has run out."""
        self.event(at, "driver", "revoked", key, pid=1)

    def write(self) -> None:
        """Its files, each whole."""
        for path, lines in self.lines.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines) + self.torn)

    def events(self) -> list[Event]:
        """What a reader finds in it, by the boot clock."""
        self.write()
        return read_jobs([self.folder], "boot", 0)[0].events

    def broken(self, *options: str) -> list[str]:
        """The rules that check-history calls broken; its exit code is 1 where there is one."""
        self.write()
        with redirect_stdout(io.StringIO()) as shown:
            code = main([*options, *(str(path) for path in sorted(self.folder.iterdir()))])
        self.said = shown.getvalue()
        lines = [line.strip() for line in self.said.splitlines()]
        found = [line[len("BROKEN") :].strip() for line in lines if line.startswith("BROKEN")]
        assert code == bool(found)
        return found


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Epoch 1 works on nm1 and is killed; epoch 2 goes on where it was, and works."""
    history = History(tmp_path)
    history.start(100, ("0", 1))
    history.transaction(200, ("0", 1), (0, 9))
    history.transaction(300, ("0", 1), (10, 19))
    history.stop(400, ("0", 1))
    history.follow(500, 2)
    history.transaction(600, ("0", 2), (20, 29))
    return history


def test_a_sound_run_is_green(history: History) -> None:
    """Every rule is named as held, and the summary counts what was looked at."""
    assert history.broken() == []
    assert "1 processors, 2 incarnations, 3 transactions committed, 0 of unknown" in history.said
    assert history.said.splitlines()[-1].strip() == "green: every rule held"


def test_unknown_events_and_torn_last_lines_are_no_faults(history: History) -> None:
    """SIGKILL tears the last line of a file, and later versions write more."""
    history.event(700, "keeper", "something-new", ("0", 2))
    history.torn = '{"ts_ms":17'
    assert history.broken() == []
    assert "7 torn last lines" in history.said


@pytest.mark.parametrize("damage", ["{nonsense", '{"event": "started"}', "[1]"])
def test_damaged_lines_are_found(history: History, damage: str) -> None:
    """A line that is no event, before the end of a file, is reported with its place."""
    path = next(iter(history.lines))
    history.lines[path].insert(0, damage)
    assert "history lines are whole" in history.broken()
    assert f"{path}, line 1" in history.said


def test_nothing_to_judge_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory without history, or none at all, is one line and exit code 1."""
    assert [main([str(path)]) for path in (tmp_path, tmp_path / "absent")] == [1, 1]
    errors = capsys.readouterr().err.splitlines()
    assert [line.startswith("error: ") for line in errors] == [True, True]


@pytest.mark.parametrize(
    ("successor", "host", "fences", "rules"),
    [
        pytest.param(("0", 3), "nm1", [], [ONE_WRITER, OWNERS], id="neither waited nor fenced"),
        pytest.param(("1", 1), "nm2", [], [ONE_WRITER, OWNERS], id="the task has moved"),
        pytest.param(("1", 1), "nm2", [("0", 2)], [OWNERS], id="fenced and did not wait"),
    ],
)
def test_a_second_writer_is_found(
    history: History,
    successor: tuple[str, int],
    host: str,
    fences: list[tuple[str, int]],
    rules: list[str],
) -> None:
    """Its permit must have waited for the stop of the earlier owner."""
    history.start(650, successor, host, fences=fences)
    history.transaction(700, successor, (30, 39), host)
    history.stop(900, ("0", 2))
    assert history.broken() == rules


def test_a_zombie_that_is_fenced_is_no_second_writer(history: History) -> None:
    """It may live on and try, as long as nothing of it is committed."""
    history.revoked(640, ("0", 2))
    history.follow(650, 3, "nm2")
    history.transaction(700, ("0", 3), (30, 39), "nm2")
    history.transaction(800, ("0", 2), (30, 45), is_known=False)
    history.stop(900, ("0", 2))
    assert history.broken() == []


def test_a_commit_reported_late_is_no_fault(history: History) -> None:
    """A container that stood still between its commit and its report had committed in time."""
    spans: dict[str, Any] = {TASK: {INPUT: [30, 39]}}
    history.event(640, "container", "transaction-ending", ("0", 2), offsets=spans)
    history.revoked(640, ("0", 2))
    history.follow(650, 3, "nm2")
    history.event(700, "container", "transaction-committed", ("0", 2))
    history.transaction(710, ("0", 3), (40, 49), "nm2")
    assert history.broken() == []


def test_a_commit_of_a_fenced_incarnation_is_found(history: History) -> None:
    """A transaction that began after the successor had fenced it, and was committed."""
    history.revoked(640, ("0", 2))
    history.follow(650, 3, "nm2")
    history.transaction(700, ("0", 2), (30, 39))
    assert history.broken() == ["nothing of a fenced incarnation is committed"]


@pytest.mark.parametrize(
    ("at", "role", "name", "epoch", "fields"),
    [
        (700, "driver", "permit-granted", 1, {"resource": "c1", "pid": 1}),
        (700, "driver", "permit-granted", 2, {"resource": "another", "pid": 1}),
        (700, "container", "commit", 2, {"pid": 99}),
        (502, "launcher", "child-started", 2, {"pid": 99}),
    ],
    ids=["it falls", "two launchers", "two containers", "two starts"],
)
def test_an_epoch_that_falls_or_has_two_processes_is_found(
    history: History, at: int, role: str, name: str, epoch: int, fields: dict[str, Any]
) -> None:
    """A permit of a lower epoch than an earlier one's; two of one kind under one epoch."""
    history.event(at, role, name, ("0", epoch), **fields)
    assert history.broken() == [EPOCHS]


@pytest.mark.parametrize(
    "step", ["permit-granted", "permit-received", "child-started", "fenced", "started"]
)
def test_a_start_without_one_of_its_steps_is_found(history: History, step: str) -> None:
    """Each step of the start of an incarnation that goes on must be there."""
    history.follow(650, 3, without=step)
    history.transaction(700, ("0", 3), (30, 39))
    assert STEPS in history.broken()
    assert f"without {step}" in history.said


@pytest.mark.parametrize("begun", [True, False])
def test_a_job_that_leaves_yarn_has_starts_without_permits(
    history: History, *, begun: bool
) -> None:
    """Those of processors that a user has started, and no others."""
    key = ("7", 3)
    if begun:
        history.event(640, "processor", "processor-begun", ("7", 0))
    fenced = [{"processor_id": "0", "epoch": 2}]
    history.event(650, "container", "fenced", key, fenced=fenced, tasks=[TASK])
    history.event(651, "container", "locality-written", key, tasks=[TASK], locality="nm1")
    history.event(652, "container", "started", key)
    history.transaction(700, key, (30, 39))
    assert bool(history.broken()) is not begun
    assert ("without permit-granted" in history.said) is not begun


@pytest.mark.parametrize(
    ("step", "role"),
    [
        ("permit-granted", "driver"),
        ("permit-received", "launcher"),
        ("child-started", "launcher"),
        ("fenced", "container"),
        ("restore-finished", "container"),
        ("locality-written", "container"),
        ("started", "container"),
    ],
)
def test_a_step_out_of_its_order_is_found(history: History, step: str, role: str) -> None:
    """A step that comes after what must follow it: here after the first transaction."""
    history.follow(650, 3, without=step)
    history.transaction(700, ("0", 3), (30, 39))
    history.event(750, role, step, ("0", 3), resource="c3", fenced=[])
    assert STEPS in history.broken()


def test_a_false_locality_is_found(history: History) -> None:
    """A locality that names another host than the process, the launcher and the permit."""
    history.follow(650, 3, host_said="nm3")
    assert history.broken() == [LOCALITIES]


def test_a_host_in_the_directories_of_two_nodes_is_found(history: History) -> None:
    """A process that takes itself for one of another node writes that node's name."""
    path = history.folder / "nm2" / "job-1" / ".history" / "container-nm1.jsonl"
    history.lines[path] = [next(iter(history.lines.values()))[0]]
    assert history.broken() == [LOCALITIES]


@pytest.mark.parametrize(
    ("host", "moves", "rules"),
    [
        ("nm2", False, []),
        ("nm1", False, ["Invariant 1: active and standby on different hosts"]),
        ("nm2", True, ["Invariant 2: a standby stops before its active starts there"]),
    ],
    ids=["elsewhere", "beside its active", "its active does not wait for it"],
)
def test_a_standby_has_a_host_without_its_active(
    history: History, host: str, rules: list[str], *, moves: bool
) -> None:
    """It may come where its active does not live, and stops before that begins there."""
    roles = {"processor_role": "standby", "active_processor_id": "0"}
    history.start(550, ("0-0", 1), host, tasks=["standby of 0"], roles=roles)
    history.stop(900, ("0-0", 1), host)
    if moves:
        history.stop(640, ("0", 2))
        history.follow(650, 3, "nm2")
    assert history.broken() == rules


def test_machines_are_compared_by_their_wall_clocks(history: History) -> None:
    """Boot clocks that are apart mean several machines; what the tolerance covers is no fault."""
    history.skews["nm2"] = 300_000
    history.start(650 - 300_000, ("0", 3), "nm2", fences=[])
    history.stop(900, ("0", 2))
    assert history.broken() == []
    assert "wall clocks, within 1000 ms" in history.said
    assert history.broken("--tolerance-ms", "10")


# ------------------------------------------------------------------ a JobModel that changes


def changed(
    history: History, at: int, version: int, *, restarts_all: bool = False, **after: list[str]
) -> None:
    """The driver says that it publishes a version, and what each processor has afterwards."""
    stated = {
        processor_id.strip("_"): {"before": None, "after": {t: [0, []] for t in tasks}}
        for processor_id, tasks in after.items()
    }
    fields: dict[str, Any] = {"version": version, "restarts_all": restarts_all, "changed": stated}
    history.event(at, "driver", "model-change", ("0", 1), pid=1, **fields)


def test_an_owner_that_a_new_attempt_has_waited_for_is_no_fault(history: History) -> None:
    """No process had reported its stop: the driver says so, and that the time was over."""
    history.event(640, "driver", "hold-back-over", ("0", 1), pid=1, unheard=["0@2"])
    history.follow(650, 3, "nm2")
    history.stop(700, ("0", 2))
    assert history.broken() == []


@pytest.mark.parametrize(
    "why", ["changed", "all", "job-ending", "placement-answered", "failover-decided"]
)
def test_a_change_that_concerns_a_container_may_stop_it(history: History, why: str) -> None:
    """Its tasks change, or a key that all read; the job ends; a command; its active's failover."""
    if why.startswith(("job", "placement", "failover")):
        history.event(640, "driver", why, ("1", 1), pid=1, commanded="0", standby="0")
    else:
        changed(history, 640, 2, restarts_all=why == "all", _0=[TASK, "Partition 1"])
    history.event(645, "driver", "stop-ordered", ("0", 2), pid=1)
    history.stop(650, ("0", 2))
    history.follow(660, 3, tasks=[TASK, "Partition 1"])
    assert history.broken() == []


@pytest.mark.parametrize("is_temporary", [True, False])
def test_a_temporary_standby_may_be_stopped_at_any_time(
    history: History, *, is_temporary: bool
) -> None:
    """It is there for a command; its permit says so."""
    role = {"processor_role": "standby", "active_processor_id": "0"}
    lines: dict[str, Any] = {"temporary": True} if is_temporary else {}
    key = ("0-warm", 1)
    history.event(640, "driver", "permit-granted", key, pid=1, model_version=1, **role, **lines)
    history.event(645, "driver", "stop-ordered", key, pid=1, **role)
    assert history.broken() == ([] if is_temporary else [ONLY_CHANGED])


def test_a_stop_without_any_change_is_found(history: History) -> None:
    """The tasks of another processor changed; one that was overtaken before may be stopped."""
    changed(history, 640, 2, _1=["Partition 1"])
    history.event(641, "driver", "failover-decided", ("0", 1), pid=1, active="0", standby="0-0")
    history.event(641, "driver", "placement-answered", ("0", 1), pid=1, commanded="1")
    history.event(645, "driver", "stop-ordered", ("0", 1), pid=1)
    assert history.broken() == []
    history.event(650, "driver", "stop-ordered", ("0", 2), pid=1)
    history.stop(655, ("0", 2))
    history.follow(660, 3)
    assert history.broken() == [ONLY_CHANGED]


def test_a_container_with_the_tasks_of_another_version_is_found(history: History) -> None:
    """Its permit names the version that it must run."""
    changed(history, 620, 2, _0=["Partition 1"])
    changed(history, 640, 3, _0=[TASK])
    history.stop(650, ("0", 2))
    history.follow(660, 3, without="permit-granted", tasks=["Partition 1"])
    fields: dict[str, Any] = {"resource": "c3", "on_host": "nm1", "pid": 1}
    history.event(660, "driver", "permit-granted", ("0", 3), model_version=3, **fields)
    assert history.broken() == [THEIR_TASKS]


@pytest.mark.parametrize(
    ("lost", "tasks", "is_sound"),
    [
        (["2"], {"2": ([TASK], []), "3": (["P"], ["P", TASK])}, True),
        (["2"], {"2": ([TASK], None), "3": (["P"], ["P", TASK])}, True),
        (["2"], {"2": ([TASK], [TASK])}, False),
        (["2"], {"2": ([TASK], []), "3": (["P"], [TASK]), "4": ([], ["P"])}, False),
        (None, {"2": ([TASK], [TASK])}, True),
    ],
)
def test_a_failover_of_mixed_containers_moves_only_lost_tasks(
    history: History,
    lost: list[str] | None,
    tasks: dict[str, tuple[list[str], list[str] | None]],
    *,
    is_sound: bool,
) -> None:
    """A container that is there keeps its tasks; standalone processors report no lost ones."""
    shown = {
        p: {"before": {t: [0, []] for t in had}, "after": has and {t: [0, []] for t in has}}
        for p, (had, has) in tasks.items()
    }
    fields: dict[str, Any] = {"version": 9, "restarts_all": False, "changed": shown}
    history.event(640, "driver", "model-change", ("0", 1), pid=1, **fields)
    history.event(641, "driver", "tasks-taken-over", ("0", 1), pid=1, version=9, processors=lost)
    history.event(642, "driver", "tasks-taken-over", ("0", 1), pid=1, version=8, processors=["3"])
    rule = "a failover of mixed containers moves only lost tasks"
    assert history.broken() == ([] if is_sound else [rule])


@pytest.mark.parametrize(
    ("at", "stated", "is_sound"),
    [
        (600, WHOLE, True),
        (600, WHOLE | {"total_ms": 99}, False),
        (600, WHOLE | {"phases_ms": {"detect": -3, "restore": 103}}, False),
        (502, WHOLE, False),
    ],
)
def test_a_recovery_is_whole_and_over_when_its_container_has_fenced(
    history: History, at: int, stated: dict[str, Any], *, is_sound: bool
) -> None:
    """Its phases are the whole of it, none goes back, and the driver's report is not too early."""
    history.event(at, "driver", "recovered", ("0", 2), pid=1, **stated)
    assert history.broken() == ([] if is_sound else ["the phases of a recovery are the whole"])


def test_what_another_user_has_is_not_judged_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """A job's folder is its user's alone: a reader without the right hears which was left out."""
    with open_folder() as base:
        (base / "job-1" / ".history").mkdir(parents=True)
        (base / "job-1").chmod(0)
        with unprivileged():
            assert main([str(base)]) != 0
        (base / "job-1").chmod(0o700)
    assert f"not judged: {base / 'job-1'}: Permission denied" in capsys.readouterr().err
