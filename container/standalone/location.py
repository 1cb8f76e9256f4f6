"""LocationIdProvider: the location of a processor, from a class of the job's own.

Source: HA-STANDALONE, "LocationIdProvider". Processors of one location share its folders of state.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, in_one_line
from homeport.config.settings.standalone_section import location_id
from homeport.job_coordinator.user_code import user_object

_REMEDY = "correct the class, or write the location as job.location-id"


class LocationIdProvider(ABC):
    """The base of the job's own class, of which each processor makes one before it registers."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @abstractmethod
    def location_id(self) -> str:
        """Return the location: the same text for all processors that see the same files."""


def location_of(config: Config, environ: Mapping[str, str], host_name: str) -> str:
    """Return the answer of the job's provider, else ``job.location-id``, else the host name.

    ConfigError: the class cannot be used or fails, or the variable in ``job.location-id`` is not
    set.
    """
    key = keys.JOB_LOCATION_ID_PROVIDER_FACTORY
    name = key.read(config)
    if name is None or name == keys.SAMZAS_LOCATION:
        return location_id(config, environ, host_name)
    if keys.JOB_LOCATION_ID.is_set(config):
        rule = f"{keys.JOB_LOCATION_ID.name} says the location already"
        raise ConfigError(key.name, name, rule, "remove one of the two keys")
    try:
        found: object = _made(name, config).location_id()
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - the job's own code may raise anything
        rule = f"the provider has failed: {in_one_line(error)}"
        raise ConfigError(key.name, name, rule, _REMEDY) from None
    if not isinstance(found, str) or not found.strip():
        rule = f"the provider gave {found!r}, which is no location"
        raise ConfigError(key.name, name, rule, _REMEDY)
    return found.strip()


def _made(name: str, config: Config) -> LocationIdProvider:
    key = keys.JOB_LOCATION_ID_PROVIDER_FACTORY.name
    found = user_object(key, name, "see that it is on PYTHONPATH")
    if not (isinstance(found, type) and issubclass(found, LocationIdProvider)):
        rule = f"it must name a subclass of LocationIdProvider of {__name__}, as module:Class"
        raise ConfigError(key, name, rule, "correct the name")
    return found(config)
