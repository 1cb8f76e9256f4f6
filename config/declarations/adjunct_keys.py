"""Configuration keys of adjunct stores; ``keys`` offers them with all others."""

from homeport.config.config import INT_MAX, LONG_MAX
from homeport.config.declarations.key_types import (
    IntKey,
    ListKey,
    Liveness,
    OwnIntKey,
    OwnTextKey,
    Reach,
    TextKey,
)

ADJUNCT = "ADJUNCT"
"""Source of the keys that the document on adjunct data stores names."""

_PERCENT = 100

ADSTORE_MANAGER_FACTORY = TextKey(
    "adstore.manager.factory",
    "class, module:Name, whose get_adjunct_data_store_manager makes what fills adjunct stores, "
    "one for each task; default the built-in one, with extractors",
    source=ADJUNCT,
    reach=Reach.CLASS,
)
ADSTORE_FRAMES_MAX_BYTES = OwnIntKey(
    "adstore.frames.max.bytes",
    "rows of all adjunct stores that a pipeline takes as frames, as columns and for each "
    "container; a container with more ends",
    default=33554432,
    maximum=INT_MAX,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_ADSTORE_INPUT = TextKey(
    "stores.<store>.adstore.input",
    "input, system.stream or stream, that fills the store, which tasks then only read: the part "
    "of each task, or with task.broadcast.inputs all of it in each container",
    source=ADJUNCT,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_ADSTORE_EXTRACTOR_FACTORY = TextKey(
    "stores.<store>.adstore.key.value.extractor.factory",
    "class, module:Name, whose get_key_value_extractor makes what takes key and value from a "
    "record; default the record's own",
    source=ADJUNCT,
    reach=Reach.CLASS,
)
STORE_ADSTORE_VALIDITY_MS = IntKey(
    "stores.<store>.adstore.validity.ms",
    "time since its last flush from which a store on a host is filled again; -1: it never is for "
    "that",
    default=86400000,
    minimum=-1,
    maximum=LONG_MAX,
    source=ADJUNCT,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_ADSTORE_MARKER_HEADER = OwnTextKey(
    "stores.<store>.adstore.version.marker.header",
    "header of the records that begin or end a version of a bounded data set in their partition: "
    "its value is begin or end, with a number where partitions are several",
)
STORE_ADSTORE_MARKER_KEY = OwnTextKey(
    "stores.<store>.adstore.version.marker.key",
    "instead of that header: key, as UTF-8, of the records that do so by their value",
)
STORE_ADSTORE_MINIMUM_SHARE = OwnIntKey(
    "stores.<store>.adstore.version.minimum.share.percent",
    "least size of a version, in records and as a share of the one before, with which it is "
    "served; 0: any",
    default=0,
    minimum=0,
    maximum=_PERCENT,
    own_unit="%",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_ADSTORE_LATE_MS = OwnIntKey(
    "stores.<store>.adstore.version.late.ms",
    "age from which a version without its end is reported, and time without a record of its "
    "stream after which a container that waits for the first one ends",
    default=86400000,
    maximum=LONG_MAX,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_SIDE_INPUTS = ListKey(
    "stores.<store>.side.inputs",
    "Samza's name for stores.<store>.adstore.input; one stream",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
STORE_SIDE_INPUTS_PROCESSOR_FACTORY = TextKey(
    "stores.<store>.side.inputs.processor.factory",
    "Samza's name for stores.<store>.adstore.key.value.extractor.factory",
    reach=Reach.CLASS,
)
