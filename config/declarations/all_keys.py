"""Every configuration key once: name, type, default, unit, meaning, source and liveness.

The keys stand in one module per topic, ``..._keys``, and are all offered here.

``ALL`` lists every key; validation and the reference table go over it.
"""

from functools import lru_cache

from homeport.config.declarations.adjunct_keys import *  # noqa: F403 - its keys are keys of this module too
from homeport.config.declarations.cluster_keys import *  # noqa: F403 - as above
from homeport.config.declarations.job_keys import *  # noqa: F403 - as above
from homeport.config.declarations.key_types import Key, literal_text
from homeport.config.declarations.rocksdb_keys import *  # noqa: F403 - as above
from homeport.config.declarations.standalone_keys import *  # noqa: F403 - as above
from homeport.config.declarations.store_keys import *  # noqa: F403 - as above
from homeport.config.declarations.system_keys import *  # noqa: F403 - as above
from homeport.config.declarations.task_keys import *  # noqa: F403 - as above

TOPICS = (
    *("app.run.", "job.", "processor.", "task.", "systems.", "serializers."),
    *("stores.", "stores-default.", "adstore.", "cluster-manager.", "yarn.", "metrics."),
)
"""How the names of keys begin."""

ALL: tuple[Key, ...] = tuple(
    key
    for topic in TOPICS
    for key in list(globals().values())
    if isinstance(key, Key) and key.name.startswith(topic)
)
"""Every key, by topic."""

_BY_NAME = {name: key for key in ALL if "<" not in key.name for name in (key.name, *key.legacy)}
_BY_TOPIC = {
    topic: sorted(
        (key for key in ALL if "<" in key.name and key.name.startswith(topic)),
        key=lambda key: -len(literal_text(key.name)),
    )
    for topic in TOPICS
}
"""Keys with parts in angle brackets; first those that say more themselves, and so match less."""


@lru_cache(maxsize=4096)  # a configuration's sections look up the same names many times
def declared(name: str) -> Key | None:
    """Return the key of that present or legacy name; None where it is not declared."""
    key = _BY_NAME.get(name)
    if key is not None:
        return key
    topic = f"{name.partition('.')[0]}."
    return next((k for k in _BY_TOPIC.get(topic, ()) if k.parts_of(name) is not None), None)
