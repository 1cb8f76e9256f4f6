"""The documents of a JobModel: each is encoded, compressed and tagged once for all requests.

SHELL: a thread does the work, so that check-ins get their answers meanwhile. The whole JobModel,
the part of one processor and the configuration share their pieces. A thousand containers that fetch
their parts cost a thousand small encodings, and one encoding of the configuration.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from aiohttp import ETag

from homeport.job_coordinator.model.codec import JobModelPieces, encode_containers, encode_part
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel

_KEPT_MODELS: Final = 3
"""The present version and, during a change, earlier ones."""

_GZIP_LEVEL: Final = 6
_GZIP_WINDOW: Final = 31  # the largest window, with gzip's header and checksum
_TAG_LENGTH: Final = 32

JSON: Final = "application/json"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form:
    """The requested form of a document: secrets masked or not, compressed by gzip or not."""

    mask_secrets: bool
    gzip: bool


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes in parts, to be sent in order, and their tag. ``gzip``: whether they are compressed.

    The tag of JSON is weak: both encodings of the same content have it.
    """

    parts: tuple[bytes, ...]
    etag: ETag
    gzip: bool
    content_type: str = JSON

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(len(part) for part in self.parts)


class JobModelDocuments:
    """Keeps the documents of the models that were last requested; for one event loop."""

    def __init__(self) -> None:
        self._made: dict[int, ModelDocuments] = {}

    def of(self, model: JobModel) -> ModelDocuments:
        """Return the documents of ``model``."""
        # By identity: to compare two models costs more than to encode one.
        made = self._made.pop(id(model), None) or ModelDocuments(model)
        self._made[id(model)] = made
        if len(self._made) > _KEPT_MODELS:
            del self._made[next(iter(self._made))]
        return made


@dataclass(frozen=True, slots=True)
class _Head:
    pieces: JobModelPieces
    checksum: Any

    @classmethod
    def of(cls, model: JobModel, *, mask_secrets: bool) -> _Head:
        pieces = JobModelPieces.of(model, mask_secrets=mask_secrets)
        checksum = hashlib.sha256()
        for part in pieces.head:
            checksum.update(part)
        return cls(pieces, checksum)

    def tag(self, *rest: bytes) -> ETag:
        checksum = self.checksum.copy()
        for part in rest:
            checksum.update(part)
        return _tag(checksum)


class _GzipHead:
    def __init__(self, head: _Head) -> None:
        self._after = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        parts = [self._after.compress(part) for part in head.pieces.head]
        self._bytes = b"".join(parts) + self._after.flush(zlib.Z_SYNC_FLUSH)

    def followed_by(self, *rest: bytes) -> tuple[bytes, ...]:
        compressor = self._after.copy()
        return self._bytes, b"".join(map(compressor.compress, rest)) + compressor.flush()


class ModelDocuments:
    """The documents of one model. ``model`` is kept: its identity is the key of its entry."""

    def __init__(self, model: JobModel) -> None:
        self.model = model
        self._results: dict[Hashable, asyncio.Future[Any]] = {}

    async def whole(self, form: Form) -> Document:
        """Return the JobModel, byte for byte as ``codec.encode_job_model`` writes it."""
        head = await self._head(form)
        containers = await self._once("containers", encode_containers, self.model)
        end = head.pieces.end
        etag = await self._once(("tag", form.mask_secrets), head.tag, containers, end)
        if not form.gzip:
            return Document((*head.pieces.head, containers, end), etag, gzip=False)
        packed = await self._gzip_head(form)
        parts = await self._once(("packed", form.mask_secrets), packed.followed_by, containers, end)
        return Document(parts, etag, gzip=True)

    async def part(self, processor_id: ProcessorId, form: Form) -> Document:
        """Return the JobModel with one container alone; KeyError where it has no such container.

        ``max-change-log-stream-partitions`` is the number of the whole JobModel.
        """
        head = await self._head(form)
        member = encode_part(self.model, processor_id)
        end = head.pieces.end
        etag = head.tag(member, end)
        if not form.gzip:
            return Document((*head.pieces.head, member, end), etag, gzip=False)
        packed = await self._gzip_head(form)
        return Document(packed.followed_by(member, end), etag, gzip=True)

    async def config(self, form: Form) -> Document:
        """Return the configuration as one flat JSON object."""
        config = (await self._head(form)).pieces.config
        etag = await self._once(("config tag", form.mask_secrets), _tag_of, config)
        if not form.gzip:
            return Document((config,), etag, gzip=False)
        packed = await self._once(("packed config", form.mask_secrets), _packed, config)
        return Document((packed,), etag, gzip=True)

    async def _head(self, form: Form) -> _Head:
        make = functools.partial(_Head.of, mask_secrets=form.mask_secrets)
        return await self._once(("head", form.mask_secrets), make, self.model)

    async def _gzip_head(self, form: Form) -> _GzipHead:
        head = await self._head(form)
        return await self._once(("packed head", form.mask_secrets), _GzipHead, head)

    async def _once(self, what: Hashable, make: Callable[..., T], *arguments: object) -> T:
        future: asyncio.Future[T] | None = self._results.get(what)
        if future is None or (future.done() and future.exception() is not None):
            future = asyncio.ensure_future(asyncio.to_thread(make, *arguments))
            self._results[what] = future
        # A cancelled caller leaves the work to the others.
        return future.result() if future.done() else await asyncio.shield(future)


async def document_of(content: bytes, *, gzip: bool, content_type: str = JSON) -> Document:
    """Return ``content`` as a document, made in a thread."""
    etag = await asyncio.to_thread(_tag_of, content)
    parts = (await asyncio.to_thread(_packed, content),) if gzip else (content,)
    return Document(parts, etag, gzip, content_type)


def _tag(checksum: Any) -> ETag:  # noqa: ANN401 - hashlib gives its objects no name
    # Weak: the compressed form goes out under the same tag.
    return ETag(checksum.hexdigest()[:_TAG_LENGTH], is_weak=True)


def _tag_of(content: bytes) -> ETag:
    return _tag(hashlib.sha256(content))


def _packed(content: bytes) -> bytes:
    return zlib.compress(content, _GZIP_LEVEL, _GZIP_WINDOW)
