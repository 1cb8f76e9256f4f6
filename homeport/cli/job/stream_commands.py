"""``homeport coordinator-stream``: show, tail."""

import datetime as dt
import json
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from msgspec import UNSET, Struct, UnsetType

from homeport.cli.job.job_view import TIMEOUT_S, stream_place
from homeport.cli.options import AsJson, FromJob, ShowSecrets, described, new_app, note, note_origin
from homeport.config.config import INT_MAX, Config
from homeport.config.printable import printable
from homeport.config.secret_names import shown_value
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.kafka.coordinator_stream_log import CoordinatorStreamLog, LoggedRecord
from homeport.job_coordinator.metadata.upgrade import shown_record
from homeport.job_coordinator.model.wire_form import about, json_text

app = new_app("Shows the records of a job's coordinator stream as they lie in Kafka.")


def _opened(config: Config) -> CoordinatorStreamLog:
    system, job = stream_place(config)
    note_origin(f"the coordinator stream {job.coordinator_topic}")
    return CoordinatorStreamLog(system, job, TIMEOUT_S)


Log = Annotated[CoordinatorStreamLog, FromJob(lambda job: _opened(job.config()))]
Type = Annotated[
    str | None, typer.Option("--type", help="Only records of this type, such as set-config.")
]


@app.command("show", short_help="print the latest record of every key")
@described(key="Only records with this key.")
def show(
    *,
    log: Log,
    type_: Type = None,
    key: str | None = None,
    as_json: AsJson = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Prints the latest record of every key, in the order of writing; deleted keys are left out.

    Each line: offset, type, key, values; writer and time. --json: one object per line.
    """
    latest: dict[tuple[str, str], LoggedRecord] = {}
    damaged = 0
    for record in log.to_head():
        message = record.message
        if message is None:
            damaged += 1
            continue
        latest.pop((message.type, message.key), None)
        if not message.is_tombstone:
            latest[message.type, message.key] = record
    for record in latest.values():
        if _is_wanted(record, type_) and key in {None, record.message and record.message.key}:
            print(printable(record_line(record, as_json=as_json, show_secrets=show_secrets)))
    if damaged:
        note(f"{damaged} damaged records are left out; tail shows them")


@app.command("tail", short_help="print the last records, and go on")
@described(
    lines=typer.Option("--lines", "-n", min=0, max=INT_MAX, help="How many."),
    follow=typer.Option("--follow", "-f", help="Go on with what comes, until interrupted."),
)
def tail(
    *,
    log: Log,
    lines: int = 20,
    follow: bool = False,
    type_: Type = None,
    as_json: AsJson = False,
    show_secrets: ShowSecrets = False,
) -> None:
    """Prints the last records, deletions and damaged ones too, as show does.

    With --follow it ends when it is interrupted, by Ctrl-C.
    """

    def print_all(records: Iterable[LoggedRecord]) -> None:
        for record in records:
            if _is_wanted(record, type_):
                line = record_line(record, as_json=as_json, show_secrets=show_secrets)
                print(printable(line), flush=True)

    wanted = (record for record in log.to_head() if _is_wanted(record, type_))
    print_all(deque(wanted, maxlen=lines))
    if follow:
        print_all(log.onward())


def _is_wanted(record: LoggedRecord, type_: str | None) -> bool:
    return type_ is None or (record.message is not None and record.message.type == type_)


class ShownRecord(Struct, frozen=True):
    """One record of the coordinator stream, for a script."""

    offset: Annotated[int, about("in the coordinator stream")]
    type: Annotated[str | UnsetType, about("of the record, such as set-config")] = UNSET
    key: Annotated[str | UnsetType, about("of the record")] = UNSET
    values: Annotated[
        Mapping[str, str] | UnsetType | None, about("its fields; null: it is deleted")
    ] = UNSET
    source: Annotated[str | UnsetType | None, about("which program wrote it")] = UNSET
    host: Annotated[str | UnsetType, about("where that ran")] = UNSET
    username: Annotated[str | UnsetType, about("that of the user it ran as")] = UNSET
    timestamp: Annotated[int | UnsetType, about("when, in ms since 1970")] = UNSET
    fault: Annotated[
        str | UnsetType, about("why it cannot be read; then only offset is beside it")
    ] = UNSET


def record_line(record: LoggedRecord, *, as_json: bool, show_secrets: bool) -> str:
    """Return one record in one line."""
    message = record.message
    if message is None:
        damaged = ShownRecord(offset=record.offset, fault=record.fault)
        return json_text(damaged) if as_json else f"{record.offset}  damaged: {record.fault}"
    values = _values(message, show_secrets=show_secrets)
    if as_json:
        return json_text(
            ShownRecord(
                offset=record.offset,
                type=message.type,
                key=message.key,
                values=values,
                source=message.source,
                host=message.host,
                username=message.username,
                timestamp=message.timestamp_ms,
            )
        )
    if values is None:
        return f"{record.offset}  {message.type}  {message.key}  deleted"
    text = values["value"] if [*values] == ["value"] else _json(values)
    written = dt.datetime.fromtimestamp(message.timestamp_ms / 1000, dt.UTC)
    at = written.isoformat(timespec="milliseconds")
    who = f"{message.source or 'unknown'}, {message.username}@{message.host}"
    return f"{record.offset}  {message.type}  {message.key} = {text}  ({who}, {at})"


def _values(message: CoordinatorStreamMessage, *, show_secrets: bool) -> Mapping[str, str] | None:
    if message.type == MessageType.SET_PACKAGE and (piece := message.value("data")) is not None:
        return {"data": f"{len(piece)} characters of base64"}
    if message.values is None or show_secrets:
        return message.values
    if message.type == MessageType.SET_UPGRADE:
        return shown_record(message.values)
    if message.type != MessageType.SET_CONFIG:
        return message.values
    return {name: shown_value(message.key, text) for name, text in message.values.items()}


def _json(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
