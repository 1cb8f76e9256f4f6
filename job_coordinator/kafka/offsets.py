"""The offsets that a broker answers, and the number by which the library reports no answer."""

from __future__ import annotations

from concurrent.futures import Future

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec

# The library gives these two no types.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # untyped there
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped there


def reported_offset(asked: Future[ListOffsetsResultInfo], timeout_s: float | None = None) -> int:
    """The answer to a request with ``AdminClient.list_offsets``.

    Measured on a broker that stands still, or whose answers are lost on the way: the library
    reports no error when the time limit of the request is over, but a result without an offset. As
    the end of a changelog that number would mean that there is nothing to read, or that the store
    is ahead of it.

    Raises:
        KafkaException: the broker refused, or did not answer.
        TimeoutError: nothing came within ``timeout_s``.
    """
    offset = int(asked.result(timeout_s).offset)
    if offset == OFFSET_INVALID:
        why = "the broker did not answer with the offset in time"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, why))  # noqa: SLF001 - a public name of the library
    return offset
