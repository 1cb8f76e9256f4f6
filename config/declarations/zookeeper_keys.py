"""Configuration keys of what processors show ZooKeeper, and of the ACL of their nodes."""

from __future__ import annotations

from homeport.config.declarations.key_types import OWN, BoolKey, Reach, TextKey

DIGEST, DIGEST_MD5, GSSAPI = "digest", "DIGEST-MD5", "GSSAPI"
CREATOR, OPEN = "creator", "open"
JOB_COORDINATOR_ZK_AUTH_SCHEME = TextKey(
    "job.coordinator.zk.auth.scheme",
    "how processors and tools show ZooKeeper their user: its scheme digest, or that mechanism of "
    "SASL; GSSAPI takes the ticket of kinit and needs the Python module kerberos",
    choices=(DIGEST, DIGEST_MD5, GSSAPI),
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_AUTH_USERNAME = TextKey(
    "job.coordinator.zk.auth.username",
    "the user that ZooKeeper knows; with GSSAPI the principal, default that of the ticket",
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_AUTH_PASSWORD = TextKey(
    "job.coordinator.zk.auth.password",
    "where that user's password is: env:NAME of a variable, or file:PATH; a password itself is "
    "refused",
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_ACL = TextKey(
    "job.coordinator.zk.acl",
    "which clients of ZooKeeper may read and change the job's nodes: creator (those of the user "
    "that the job shows, else of its certificate) or open (all); default creator where it shows "
    "one",
    choices=(CREATOR, OPEN),
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_ENABLED = BoolKey(
    "job.coordinator.zk.tls.enabled",
    "whether connections to ZooKeeper are encrypted; its servers show a certificate for the names "
    "that job.coordinator.zk.connect has",
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_CA_PATH = TextKey(
    "job.coordinator.zk.tls.ca.path",
    "PEM file with the certificates of authorities that sign those of ZooKeeper's servers; "
    "default the authorities of the system",
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_CERTIFICATE_PATH = TextKey(
    "job.coordinator.zk.tls.certificate.path",
    "PEM file with the certificate that processors and tools show ZooKeeper",
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_KEY_PATH = TextKey(
    "job.coordinator.zk.tls.key.path",
    "PEM file with the key of that certificate",
    source=OWN,
    reach=Reach.PLACE,
)
JOB_COORDINATOR_ZK_TLS_KEY_PASSWORD = TextKey(
    "job.coordinator.zk.tls.key.password",
    "where the password of that key is, if it has one: env:NAME or file:PATH",
    source=OWN,
    reach=Reach.PLACE,
)
