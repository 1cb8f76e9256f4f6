"""What runs of the demo share: the input is produced, the result and the history are judged."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from flights_demo.job import EXAMPLE, ROOT
from flights_demo.names import Reference, Verdict, judge
from flights_demo.options import ALONE, APP
from flights_demo.screen import DemoError, Screen
from flights_demo.verdict import (
    PARTITIONS,
    Reader,
    changes_of,
    compare,
    next_offsets,
    outputs_of,
    skipped_flights,
)

sys.path.insert(0, str(EXAMPLE))
from data import (
    EDITIONS,
    FLIGHTS,
    WITHOUT_TAIL_NUMBER,
    added_up,
    airline_names,
    expected_summaries,
    read_airports,
    read_planes,
)

NEW_AIRLINES_EARLY = FLIGHTS // 8
"""Where input comes for minutes, so that faults befall the job on both sides of it."""
NEW_AIRLINES_LATE = FLIGHTS * 3 // 4
"""Where all of it comes at once: what is left keeps the job at work beyond it."""
_TOPICS_LIMIT_S = 120
_SHOWN = 5
_AWAIT_LIMIT_S = 120.0
_POLL_S = 0.2


def run_producer(
    servers: str, properties: Path | None, *arguments: str, rate: int | None = None
) -> subprocess.Popen[bytes]:
    """The example's producer runs. ``rate``: records per second; None: as fast as it goes."""
    argv = [sys.executable, "producer.py", "--bootstrap-servers", servers, *arguments]
    argv += ["--rate", str(rate)] if rate else []
    argv += [] if properties is None else ["--command-config", str(properties)]
    # A group of its own: close() ends it, not the terminal's Ctrl-C in the midst of something.
    return subprocess.Popen(argv, cwd=EXAMPLE, process_group=0)


def create_topics(servers: str, properties: Path | None) -> None:
    """The topics of the flights job are there, with planes, airports and airlines.

    DemoError: they cannot be created, or not be filled.
    """
    producer = run_producer(servers, properties, "--no-flights")
    try:
        code = producer.wait(_TOPICS_LIMIT_S)
    finally:
        end_producer(producer)
    if code != 0:
        raise DemoError("the topics could not be created; the producer's lines say why")


def make_topics(servers: str, *topics: NewTopic) -> None:
    """Further topics are there; one that was there before is no error."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 3})
    for future in admin.create_topics([*topics], operation_timeout=30).values():
        try:
            future.result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def until_consumed(
    reader: Reader,
    screen: Screen,
    producer: subprocess.Popen[bytes],
    limit_s: float,
    look: Callable[[int], None] = lambda _consumed: None,
) -> Verdict:
    """Wait until the checkpoints stand at the end of each input partition.

    ``look``: is called meanwhile with how many records are consumed.

    DemoError: the producer failed, or it takes too long.
    """
    deadline = time.monotonic() + limit_s
    while True:
        produced = producer.poll()
        if produced not in (None, 0):
            raise DemoError(f"the producer ended with exit code {produced}")
        ends = [reader.end_offset("flights", p) for p in range(PARTITIONS)]
        done = next_offsets(reader)
        count = sum(done.values())
        look(count)
        progress = f"{count:,} of {sum(ends):,} records in committed checkpoints"
        if produced == 0 and all(done[p] >= ends[p] for p in range(PARTITIONS)):
            screen.say(progress)
            return f"all {FLIGHTS:,} flights are consumed", count == FLIGHTS
        if time.monotonic() > deadline:
            raise DemoError(f"not consumed in time: {done} of {ends}")
        screen.progress(progress)
        time.sleep(0.25)  # committed checkpoints are polled


def await_that(
    condition: Callable[[], bool],
    what: str,
    screen: Screen,
    poll_s: float = _POLL_S,
    limit_s: float = _AWAIT_LIMIT_S,
) -> None:
    """The condition holds. It is polled: status, history and YARN have no event to wait for.

    DemoError: it does not hold in time.
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            if condition():
                return
        except (OSError, http.client.HTTPException, ValueError):
            pass  # a driver that starts again does not answer yet
        if time.monotonic() > deadline:
            raise DemoError(f"waited for {limit_s:.0f} s in vain for {what}")
        screen.progress(f"waiting for {what}")
        time.sleep(poll_s)


def end_producer(producer: subprocess.Popen[bytes] | None) -> None:
    """It has ended."""
    if producer is not None and producer.poll() is None:
        producer.terminate()
        producer.wait(30)


def check_result(reader: Reader, screen: Screen, form: str | None) -> list[Verdict]:
    """Each plane against the right answer. ``form``: how the job is written; None: as usual."""
    if form == ALONE:
        return [_compared(added_up(changes_of(reader)), screen)]  # it has no store
    judged = judge(outputs_of(reader), reference())
    verdicts = [_compared(judged.summaries, screen)]
    show_faults(screen, [*judged.wrong, *judged.mixed, *judged.back])
    verdicts += judged.verdicts()
    skipped = skipped_flights(reader, int.from_bytes if form == APP else int)
    text = f"{skipped:,} flights without a tail number were skipped and counted"
    return [*verdicts, (text, skipped == WITHOUT_TAIL_NUMBER)]


def show_faults(screen: Screen, faults: Sequence[str]) -> None:
    """Print the first ones."""
    for line in faults[:_SHOWN]:
        screen.say(f"DIFFERENT {line}")


def reference() -> Reference:
    """What the data's own files say of planes, airports and airlines."""
    return Reference(
        {plane["tailnum"]: plane for plane in read_planes()},
        {airport["faa"]: airport for airport in read_airports()},
        [airline_names(edition) for edition in EDITIONS],
    )


def _compared(found: Mapping[str, Mapping[str, Any]], screen: Screen) -> Verdict:
    expected = expected_summaries()
    differences = compare(found, expected)
    show_faults(screen, differences)
    text = f"all {len(expected):,} planes are exactly right ({len(differences)} differ)"
    return text, not differences


def judge_history(folders: Sequence[Path], nodes: str) -> Verdict:
    """By a program of its own, which shares no code with the job.

    ``folders``: one for each of the ``nodes``, all of one machine.
    """
    judge = str(ROOT / "scripts" / "check-history")
    argv = [sys.executable, judge, "--clock", "boot", *map(str, folders)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    sound = f"the history of all {nodes} is sound (scripts/check-history)"
    return sound, done.returncode == 0
