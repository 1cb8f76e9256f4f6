"""What a parent process gives a stream container beside its permit."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import JobConfig
from homeport.container.host.disk_space import room_on_disk_of
from homeport.container.host.orders import CONFIG_VARIABLE
from homeport.job_coordinator.history.writer import history_directory
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import TOKEN_FILE_NAME
from homeport.job_coordinator.http.pinned_tls import certificate_beside, secret_beside
from homeport.job_coordinator.model.ids import Host, host_of
from homeport.job_coordinator.model.json_values import parse_object, required_field
from homeport.job_coordinator.own_folders import make_own_folder

_LOG = logging.getLogger(__name__)

LOCATION_VARIABLE, WORK_VARIABLE = "HOMEPORT_LOCATION_ID", "HOMEPORT_WORK_DIR"
TREE_VARIABLE = "HOMEPORT_TREE"
"""Of a processor's child: its location id, the processor's folder, and the id of its tree."""


def orders_file(epoch: int) -> str:
    """Return the file in the processor's folder with the standbys that its incarnation keeps."""
    return f"standbys-{epoch}.json"


def am_client(environ: Mapping[str, str], work_dir: Path) -> CoordinatorClient:
    """Return a client of the AM of a launcher's child.

    ConfigError: a variable or the token file is missing.
    """
    url = environ.get("SAMZA_COORDINATOR_URL", "")
    if not url:
        remedy = "stream containers are started by the launcher, which sets it"
        raise ConfigError("SAMZA_COORDINATOR_URL", None, "it names the job coordinator", remedy)
    token_file = Path(environ.get("HOMEPORT_TOKEN_FILE") or work_dir / TOKEN_FILE_NAME)
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        rule = f"it must be the file with the job's token ({error.strerror})"
        remedy = "stream containers are started by the launcher, which sets it"
        raise ConfigError("HOMEPORT_TOKEN_FILE", str(token_file), rule, remedy) from None
    certificate, secret = certificate_beside(token_file), secret_beside(token_file)
    return CoordinatorClient(url, token, certificate=certificate, secret=secret)


def config_given(environ: Mapping[str, str]) -> Config | None:
    """Return the configuration that a processor gives before a permit; None: the AM has it."""
    fd = environ.get(CONFIG_VARIABLE, "")
    if not fd:
        return None
    size = os.fstat(int(fd)).st_size
    given = parse_object(os.pread(int(fd), size, 0), "the configuration")
    return Config({name: required_field(given, name, str) for name in given})


def folder_of(environ: Mapping[str, str], work_dir: Path) -> Path:
    """Return the folder of the child's processor; ``work_dir``: the child has none."""
    return Path(environ.get(WORK_VARIABLE) or work_dir)


@dataclass(frozen=True, slots=True)
class Environment:
    """The surroundings of a container: its host, the folders for its state, and its tree's id."""

    host: Host
    logged_store_base_dir: str | None
    work_dir: Path
    tree: str = ""

    @staticmethod
    def of(environ: Mapping[str, str], work_dir: Path) -> Environment:
        """Return the surroundings of a launcher's child, or of a processor's."""
        location = environ.get(LOCATION_VARIABLE)
        return Environment(
            host=Host(location) if location else host_of(environ.get("NM_HOST") or gethostname()),
            logged_store_base_dir=environ.get("LOGGED_STORE_BASE_DIR") or None,
            work_dir=folder_of(environ, work_dir),
            tree=environ.get(TREE_VARIABLE, ""),
        )

    def state_root(self, job: JobConfig) -> Path:
        """Return the folder of stores with a changelog, as Samza's ``getLoggedStorageBaseDir``."""
        if self.logged_store_base_dir is not None:
            return Path(self.logged_store_base_dir) / job.directory_name
        if job.logged_store_base_dir is not None:
            return Path(job.logged_store_base_dir)
        root = self.work_dir / "state"
        _LOG.warning(
            "neither LOGGED_STORE_BASE_DIR nor job.logged.store.base.dir is set: the state in %s "
            "will not outlive this container",
            root,
        )
        return root

    def made_roots(
        self, job: JobConfig, config: Config, needed: tuple[bool, bool] = (True, True)
    ) -> tuple[Path, Path]:
        """Return ``state_root`` and ``scratch_root``; make those ``needed``, for this user alone.

        A directory that ``job.logged.store.base.dir`` names is the operator's, and stays as it is.

        DiskError: there is no room, or no right to write. NotOwnError: a folder is another user's,
        a link, or open to others.
        """
        given = job.logged_store_base_dir
        roots = self.state_root(job), self.scratch_root(config)
        for root in (root for root, is_needed in zip(roots, needed, strict=True) if is_needed):
            below = root if given is not None and root == Path(given) else root.parent
            with room_on_disk_of(root):
                make_own_folder(root.absolute(), below.absolute())
        return roots

    def scratch_root(self, config: Config) -> Path:
        """Return the folder of stores without a changelog, which live as long as the container.

        Samza puts them into the configured directory itself, where those of two jobs would meet.
        """
        base = keys.JOB_NON_LOGGED_STORE_BASE_DIR.read(config)
        if base is None:
            return self.work_dir / "state"
        return Path(base) / JobConfig.of(config).directory_name

    def history_folder(self, job: JobConfig) -> Path:
        """Return the folder of this process's history."""
        base = self.logged_store_base_dir or job.logged_store_base_dir or self.work_dir / "state"
        return history_directory(job.history_dir, base, job.directory_name)
