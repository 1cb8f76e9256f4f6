"""The headers of a record that was read, whatever bytes other programs have given them as names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import Message

    from homeport.container.headers import HeaderPairs

_LOG = logging.getLogger(__name__)


def headers_of(message: Message) -> HeaderPairs | None:
    """Return the headers whose names are text; the log names the record that has others.

    The library raises for such a name at the first call. At each further one it gives a tuple that
    lacks it, and whose first element ends the process.
    """
    pairs: Any  # which the library's types say to be of dicts too
    try:
        pairs = message.headers()
    except SystemError:
        pairs = message.headers()
        known = [pair for pair in pairs if not repr(pair).startswith("(<NULL>")]
        message.set_headers(known)  # for the next call
        _LOG.warning(
            "input %s partition %s offset %s: %d of its %d headers have names that are not UTF-8, "
            "and are left out",
            message.topic(),
            message.partition(),
            message.offset(),
            len(pairs) - len(known),
            len(pairs),
        )
        pairs = known
    found: HeaderPairs | None = pairs
    return found
