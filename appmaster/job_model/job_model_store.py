"""The JobModels of one AM attempt, by version: in the AM's folder, the last ones in memory, too.

The files live as long as the AM's container, and its launchers no longer. So the next driver can
serve each version under which this attempt has permitted a container.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from homeport.config.config import Config
from homeport.config.errors import HomeportError, InvariantViolation
from homeport.job_coordinator.metadata.epochs import JobModelVersion
from homeport.job_coordinator.model.codec import decode_job_model, encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import JobModel

_AT_HAND = 4
"""How many of the last requested versions are kept in memory: a model may be large."""


class JobModelStore:
    """The answers to ``GET /?version=N``. Read on one event loop; ``save`` on any thread.

    ``folder``: that of the AM's container.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._newest: tuple[int, JobModel] | None = None
        self._at_hand: dict[int, JobModel] = {}
        self._processors: set[ProcessorId] = set()

    @property
    def version(self) -> int:
        """The version in force; 0 before the first one."""
        return self._newest[0] if self._newest else 0

    @property
    def model(self) -> JobModel:
        """The JobModel in force, which there must be."""
        if self._newest is None:
            raise InvariantViolation("no JobModel is in force yet")
        return self._newest[1]

    def save(self, version: int, model: JobModel) -> None:
        """Save the model, secrets included, in a private file of its version."""
        path = self._path(version)
        new = path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
            file.write(encode_job_model(model, mask_secrets=False))
        new.replace(path)

    def find(self, wanted: JobModelVersion) -> JobModel | None:
        """Return the version that a driver of this attempt saved; None: there is none.

        A file of that number with another digest belongs to a change that was never published.
        """
        return self._load(wanted.version, wanted.digest)

    def enter(self, version: int, model: JobModel) -> None:
        """Put the model in force as ``version``."""
        self._newest = (version, model)
        self._keep(version, model)
        self.remember(model.containers)

    def reconfigured(self, config: Config) -> None:
        """Give the model in force another configuration, and keep its version.

        Its file stays: the next driver reads the difference from the coordinator stream.
        """
        self.enter(self.version, replace(self.model, config=config))

    def remember(self, processor_ids: Iterable[ProcessorId]) -> None:
        """Remember these, of whatever version they are."""
        self._processors.update(processor_ids)

    def knows(self, processor_id: ProcessorId) -> bool:
        """Return whether it is a processor of the model in force, or was one before."""
        return processor_id in self._processors

    def get(self, version: int | None) -> JobModel | None:
        """Return the model of ``version`` (None: the one in force); None: there is none.

        A version above the one in force does not count, even if its file is there already.
        """
        if self._newest is None or (version is not None and not 0 < version <= self.version):
            return None
        if version is None or version == self.version:
            return self._newest[1]
        model = self._at_hand.get(version) or self._load(version)
        if model is not None:
            self._keep(version, model)
        return model

    def _load(self, version: int, digest: str | None = None) -> JobModel | None:
        try:
            body = self._path(version).read_bytes()
            is_wanted = digest in {None, hashlib.sha256(body).hexdigest()}
            return decode_job_model(body) if is_wanted else None
        except (OSError, HomeportError):
            return None

    def _keep(self, version: int, model: JobModel) -> None:
        self._at_hand.pop(version, None)
        self._at_hand[version] = model
        while len(self._at_hand) > _AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]

    def _path(self, version: int) -> Path:
        return self._folder / f"job-model-{version}.json"
