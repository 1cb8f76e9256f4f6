"""What a cluster with locks adds to the settings: Kerberos, TLS, SASL, and rights of access.

Keytabs are in /keytabs and keys in /secrets of each container; neither is in the image.
"""

from __future__ import annotations

REALM = "HOMEPORT.TEST"
CONF = "/opt/hadoop/conf/secure"
_KEYTAB = "/keytabs/service.keytab"
_RENEW_S = 60
LIFETIME_S = 120
"""After so long a token of HDFS cannot be renewed any more; Hadoop's default is 7 days.

It is short so that a container that starts later shows that YARN gets a new token by itself.
"""


def _principal(service: str) -> str:
    return f"{service}/_HOST@{REALM}"


def core_site() -> dict[str, object]:
    """Return the settings for every Hadoop process."""
    return {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": "authentication",
        "hadoop.ssl.server.conf": "ssl-server.xml",
        # The ResourceManager gets tokens for the jobs of this user, and of no other one.
        "hadoop.proxyuser.rm.users": "homeport",
        "hadoop.proxyuser.rm.hosts": "rm",
    }


def hdfs_site() -> dict[str, object]:
    """Return the settings for the NameNode, the DataNode and their clients."""
    values: dict[str, object] = {
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "authentication",
        "dfs.http.policy": "HTTPS_ONLY",
        "dfs.namenode.https-address": "nn:9871",
        "dfs.namenode.https-bind-host": "0.0.0.0",  # noqa: S104 - of a container
        "dfs.datanode.https.address": "0.0.0.0:9865",
        "dfs.web.authentication.kerberos.principal": _principal("HTTP"),
        "dfs.web.authentication.kerberos.keytab": _KEYTAB,
        "dfs.namenode.delegation.key.update-interval": LIFETIME_S * 1000,
        "dfs.namenode.delegation.token.renew-interval": _RENEW_S * 1000,
        "dfs.namenode.delegation.token.max-lifetime": LIFETIME_S * 1000,
    }
    for role, service in (("namenode", "nn"), ("datanode", "dn")):
        values[f"dfs.{role}.kerberos.principal"] = _principal(service)
        values[f"dfs.{role}.keytab.file"] = _KEYTAB
    return values


def yarn_site() -> dict[str, object]:
    """Return the settings for the ResourceManager, the NodeManagers and their clients."""
    values: dict[str, object] = {
        "yarn.application.classpath": f".,{CONF},/opt/hadoop/jars/*",
        "yarn.scheduler.fair.allocation.file": f"{CONF}/fair-scheduler.xml",
        # With Kerberos a NodeManager reads logs by Hadoop's native library, which no jar contains.
        "yarn.log-aggregation-enable": "false",
        # A job outlives the tokens that it was submitted with: YARN gets new ones for it.
        "yarn.resourcemanager.proxy-user-privileges.enabled": "true",
        "yarn.resourcemanager.system-credentials.valid-time-remaining": _RENEW_S * 1000 // 2,
        "yarn.resourcemanager.delegation-token-renewer.thread-count": 5,
    }
    for role, service in (("resourcemanager", "rm"), ("nodemanager", "nm")):
        values[f"yarn.{role}.principal"] = _principal(service)
        values[f"yarn.{role}.keytab"] = _KEYTAB
    return values


def kafka() -> dict[str, object]:
    """Return Kafka's settings: users by SASL/SCRAM, programs and administrators by certificate.

    What no rule of access allows is refused.
    """
    values: dict[str, object] = {
        "listeners": "INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:19092,BROKER://0.0.0.0:9094,"
        "CONTROLLER://0.0.0.0:9093",
        "advertised.listeners": "INSIDE://@INSIDE@,OUTSIDE://@OUTSIDE@,BROKER://kafka:9094",
        "listener.security.protocol.map": ("INSIDE:SASL_SSL,OUTSIDE:SSL,BROKER:SSL,CONTROLLER:SSL"),
        "inter.broker.listener.name": "BROKER",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.inside.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/secrets/kafka.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/secrets/ca.pem",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:kafka;User:admin",
    }
    for listener in ("outside", "broker", "controller"):
        values[f"listener.name.{listener}.ssl.client.auth"] = "required"
    return values
