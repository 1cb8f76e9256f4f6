"""The packages of the job's code in a launcher's folder: YARN's, and those that it has fetched.

YARN localises the submission's package before it starts the launcher. A thread fetches another
package, which an order names, from the AM, so that neither lease nor check-ins wait for it. It is
unpacked under another name, and gets its own name when it is whole: if the launcher dies meanwhile,
a later one uses nothing of it. A package that names another Python environment is here only once
that can be used on this host. After a failure, the next order after a rest tries again: an order
runs with its own package or not at all. After some failures in a row this host gives up, unless the
cause is that the AM does not answer.
"""

import contextlib
import hashlib
import io
import logging
import shutil
import threading
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path

from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.job_package import package_entries
from homeport.job_coordinator.python_environment import place_in

SUBMITTED_FOLDER = "__package"
"""The submission's: the name under which YARN localises it."""
_PREFIX = f"{SUBMITTED_FOLDER}-"
_UNFINISHED = ".unfinished"
_NAME_LENGTH = 16
_PERMISSIONS = 0o777
_REST_MS, _LONGEST_REST_MS = 250, 10_000
"""After the first failure in a row, doubled with each: a full disk must not cost the AM a package
with each order."""
_TRIES = 7
"""They take a quarter of a minute: room on a disk that is about to come has come by then."""

log = logging.getLogger("launcher")


class JobPackages:
    """Holds the packages in one folder, for one thread; a second thread of its own fetches.

    ``fetch``: gets the zip with that sha256 from the AM; raises HomeportError. ``on_fetched``: the
    second thread calls it when a package is here. ``make_ready``: has the environment of a package
    on this host, None being the submission's; raises HomeportError.
    """

    def __init__(
        self,
        folder: Path,
        fetch: Callable[[str], bytes],
        on_fetched: Callable[[], None],
        make_ready: Callable[[str | None], None],
    ) -> None:
        self._folder = folder
        self._fetch = fetch
        self._on_fetched = on_fetched
        self._make_ready = make_ready
        self._environments: dict[str | None, str | None] = {None: None}
        self._thread: threading.Thread | None = None
        self._fault: tuple[str, str] | None = None
        self._is_unanswered = False
        self._failures = 0
        self._rest_ms = _REST_MS
        self._not_before_ms = 0

    def place(self, name: str | None) -> Path:
        """Return the folder of the package with that sha256, whether it is here or not.

        ``name`` None: the submission's, which is always here.
        """
        own = SUBMITTED_FOLDER if name is None else f"{_PREFIX}{name}"
        return self._folder / own

    def find(self, name: str | None) -> Path | None:
        """Return ``place``, for PYTHONPATH; None: the package is not here."""
        folder = self.place(name)
        return folder if name is None or folder.is_dir() else None

    def environment(self, name: str | None) -> str | None:
        """Return the environment that a package names, which is here; None: the submission's."""
        if name not in self._environments:
            self._environments[name] = place_in(self.place(name))
        return self._environments[name]

    def want(self, name: str | None) -> Path | None:
        """Return ``find``; if the package is not here, fetch it, now or after the rest."""
        # Before ``find``: what a thread that is over has unpacked is found.
        may_begin = not self._is_busy and boot_ms() >= self._not_before_ms
        folder = self.find(name)
        if folder is None and name is not None and may_begin:
            # A daemon: the launcher's end does not wait for the AM.
            self._thread = threading.Thread(
                target=self._get, args=[name], name="package", daemon=True
            )
            self._thread.start()
        return folder

    def fault(self, name: str | None) -> str | None:
        """Return why the last fetch of that package failed; None: it did not, or there was none."""
        fault = self._fault
        return fault[1] if fault is not None and fault[0] == name else None

    def unanswered(self, name: str | None) -> str | None:
        """Return the ``fault`` if the AM did not answer; else None."""
        return self.fault(name) if self._is_unanswered else None

    def give_up(self, name: str | None) -> str | None:
        """Return the ``fault`` after too many failures, and count from 0 again; else None."""
        fault = self.fault(name)
        if fault is None or self._failures < _TRIES:
            return None
        self._failures, self._rest_ms, self._not_before_ms = 0, _REST_MS, 0
        return fault

    def keep_only(self, wanted: Collection[Path | None]) -> None:
        """Remove other fetched packages, and unfinished ones; not during a fetch."""
        if self._is_busy:
            return
        with contextlib.suppress(OSError):  # YARN may have removed the folder
            for path in self._folder.glob(f"{_PREFIX}*"):
                if path not in wanted:
                    shutil.rmtree(path, ignore_errors=True)

    @property
    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _get(self, name: str) -> None:
        """Fetch and unpack it; log each new cause of a failure once, in one line."""
        try:
            self._unpack(name, self._fetch(name))
        except Exception as error:  # noqa: BLE001 - each way to compress has errors of its own
            fault = (name, " ".join(str(error).split()) or type(error).__name__)
            if fault != self._fault:
                own = name[:_NAME_LENGTH]
                log.warning("package %s is not here, trying again: %s", own, fault[1])
            if self.fault(name) is None:
                self._failures = 0
            self._is_unanswered = isinstance(error, UnavailableError)
            self._failures += not self._is_unanswered
            self._fault = fault
            self._not_before_ms = boot_ms() + self._rest_ms
            self._rest_ms = min(self._rest_ms * 2, _LONGEST_REST_MS)
        else:
            self._fault, self._failures = None, 0
            self._rest_ms, self._not_before_ms = _REST_MS, 0
            log.info("package %s is here", name[:_NAME_LENGTH])
            self._on_fetched()

    def _unpack(self, name: str, data: bytes) -> None:
        if hashlib.sha256(data).hexdigest() != name:
            raise WireError(f"the AM has sent {len(data)} bytes of another sha256")
        entries = package_entries(data)
        target = self.place(name)
        unfinished = target.with_name(target.name + _UNFINISHED)
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            unfinished.mkdir()
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for entry in entries:
                    path = Path(archive.extract(entry, unfinished))
                    permissions = entry.external_attr >> 16 & _PERMISSIONS
                    if permissions and not entry.is_dir():
                        path.chmod(permissions)
            self._make_ready(place_in(unfinished))
            unfinished.rename(target)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
