"""Configuration keys of jobs whose processors users start; ``keys`` offers them with all others."""

from homeport.config.declarations.key_types import (
    ClassKey,
    IntKey,
    OwnBoolKey,
    OwnIntKey,
    OwnTextKey,
    Reach,
    TextKey,
)

_HA = "HA-STANDALONE"
_DAY_MS = 86_400_000

YARN, ZOOKEEPER, LOCAL = "yarn", "zookeeper", "local"
TO_YARN, TO_ZOOKEEPER = "migrating-to-yarn", "migrating-to-zookeeper"
"""What the coordinator stream says of a job while it is migrated: it starts neither way."""
JOB_COORDINATOR_FACTORY = TextKey(
    "job.coordinator.factory",
    "what coordinates the job: yarn, zookeeper or local; each command takes its own one",
)
JOB_COORDINATOR_ZK_CONNECT = TextKey(
    "job.coordinator.zk.connect",
    "ZooKeeper servers of standalone processors: host:port, separated by commas, and a path "
    "behind the last one, if any",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_SESSION_TIMEOUT_MS = IntKey(
    "job.coordinator.zk.session.timeout.ms",
    "how long a standalone processor may be silent before its tasks go to others; ZooKeeper's own "
    "limits hold",
    default=30_000,
    minimum=1000,
    maximum=_DAY_MS,
)
JOB_COORDINATOR_ZK_CONNECTION_TIMEOUT_MS = IntKey(
    "job.coordinator.zk.connection.timeout.ms",
    "how long the start of a standalone processor waits for ZooKeeper",
    default=60_000,
    maximum=_DAY_MS,
)
JOB_COORDINATOR_ZK_CONSENSUS_TIMEOUT_MS = IntKey(
    "job.coordinator.zk.consensus.timeout.ms",
    "how long the processors have to join the barrier of a version; then comes another one",
    default=40_000,
    maximum=_DAY_MS,
)
JOB_COORDINATOR_ZK_ROOT = TextKey(
    "job.coordinator.zk.root",
    "path in ZooKeeper below which each job has a tree of its own",
    default="/homeport",
    source=_HA,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_ADMIN_PORT = OwnIntKey(
    "job.coordinator.zk.admin.port",
    "port of ZooKeeper's AdminServer, from which homeport doctor takes mode and load of servers "
    "that answer no four-letter word",
    default=8080,
    maximum=65_535,
)
JOB_DEBOUNCE_TIME_MS = IntKey(
    "job.debounce.time.ms",
    "how long the standalone processors must stay the same before tasks move",
    default=20_000,
    minimum=0,
    maximum=_DAY_MS,
)
JOB_LOCATION_ID = OwnTextKey(
    "job.location-id",
    "where a standalone processor runs: text, or env:NAME for that variable; processors with the "
    "same one share their folders of state; default the host name",
)
SAMZAS_LOCATION = "org.apache.samza.runtime.DefaultLocationIdProviderFactory"
"""Samza's default, which takes the host name as happens here without a provider."""
JOB_LOCATION_ID_PROVIDER_FACTORY = ClassKey(
    "job.location-id.provider.factory",
    "a class of the job's own, module:Class, that says where a standalone processor runs, in "
    "place of job.location-id",
    source=_HA,
    legacy=("locationid.provider.factory",),
    what="provider of locations",
    known=(SAMZAS_LOCATION,),
    has_own=True,
    otherwise="remove it where the host name is meant, else set job.location-id, or name a "
    "LocationIdProvider of the job's own as module:Class",
)
JOB_CONTAINER_MIXED_ROLES = OwnBoolKey(
    "job.container.mixed-roles",
    "whether a container on YARN has standby tasks beside active ones, in place of standby "
    "containers; standalone processors have both in any case",
)


DIGEST, DIGEST_MD5, GSSAPI = "digest", "DIGEST-MD5", "GSSAPI"
CREATOR, OPEN = "creator", "open"
JOB_COORDINATOR_ZK_AUTH_SCHEME = OwnTextKey(
    "job.coordinator.zk.auth.scheme",
    "how processors and tools show ZooKeeper their user: its scheme digest, or that mechanism of "
    "SASL; GSSAPI takes the ticket of kinit and needs the Python module kerberos",
    choices=(DIGEST, DIGEST_MD5, GSSAPI),
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_AUTH_USERNAME = OwnTextKey(
    "job.coordinator.zk.auth.username",
    "the user that ZooKeeper knows; with GSSAPI the principal, default that of the ticket",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_AUTH_PASSWORD = OwnTextKey(
    "job.coordinator.zk.auth.password",
    "where that user's password is: env:NAME of a variable, or file:PATH; a password itself is "
    "refused",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_ACL = OwnTextKey(
    "job.coordinator.zk.acl",
    "which clients of ZooKeeper may read and change the job's nodes: creator (those of the user "
    "that the job shows, else of its certificate) or open (all); default creator where it shows "
    "one",
    choices=(CREATOR, OPEN),
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_ENABLED = OwnBoolKey(
    "job.coordinator.zk.tls.enabled",
    "whether connections to ZooKeeper are encrypted; its servers show a certificate for the names "
    "that job.coordinator.zk.connect has",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_CA_PATH = OwnTextKey(
    "job.coordinator.zk.tls.ca.path",
    "PEM file with the certificates of authorities that sign those of ZooKeeper's servers; "
    "default the authorities of the system",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_CERTIFICATE_PATH = OwnTextKey(
    "job.coordinator.zk.tls.certificate.path",
    "PEM file with the certificate that processors and tools show ZooKeeper",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_KEY_PATH = OwnTextKey(
    "job.coordinator.zk.tls.key.path",
    "PEM file with the key of that certificate",
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_KEY_PASSWORD = OwnTextKey(
    "job.coordinator.zk.tls.key.password",
    "where the password of that key is, if it has one: env:NAME or file:PATH",
    reach=Reach.PLACE,
)
