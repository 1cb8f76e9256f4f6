"""ZooKeeper's transactions, and requests under way, as kazoo has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)

_REFUSED = (NoNodeError, NodeExistsError, BadVersionError, RolledBackError, RuntimeInconsistency)


def put_value(client: Any, transaction: Any, path: str, value: bytes) -> None:  # noqa: ANN401 - of kazoo
    """The node has the value after the transaction; it is made where it is not there now."""
    if client.exists(path) is None:
        transaction.create(path, value)
    else:
        transaction.set_data(path, value)


def check_no_value(client: Any, transaction: Any, path: str, value: bytes) -> bool:  # noqa: ANN401 - of kazoo
    """Return whether the node does not have the value now.

    The transaction is done only where the node is then as it is now, or is still not there.
    """
    try:
        found, stat = client.get(path)
    except NoNodeError:
        transaction.create(path, b"")  # refused where there is one; in no other eyes than its own
        transaction.delete(path)
        return True
    transaction.check(path, stat.version)
    return bool(found != value)


def is_done(transaction: Any) -> bool:  # noqa: ANN401 - of kazoo
    """Whether all of it was done; else nothing was, as something was not as it must be."""
    results: Sequence[object] = transaction.commit()
    faults = [result for result in results if isinstance(result, KazooException)]
    others = [fault for fault in faults if not isinstance(fault, _REFUSED)]
    if others:
        raise others[0]
    return not faults


def is_there(answer: Any) -> bool:  # noqa: ANN401 - of kazoo
    """Whether the node that was requested is there."""
    try:
        answer.get()
    except NoNodeError:
        return False
    return True


def answers_of(
    ask: Callable[[str], Any], path: str, names: Iterable[str]
) -> Iterator[tuple[str, Any]]:
    """(name, answer) of each node that is there, by name; all requests go out at once."""
    asked = {name: ask(f"{path}/{name}") for name in sorted(names)}
    for name, answer in asked.items():
        with contextlib.suppress(NoNodeError):
            yield name, answer.get()
