"""What the daemons of the image read: Hadoop's, Kafka's and ZooKeeper's files.

Where no address, no path and no file system is concerned, YARN's settings are those of the local
cluster. Hadoop puts the environment of a daemon into its values, so one file serves all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docker_cluster import secure_settings
from homeport.local_cluster import hadoop_conf
from homeport.local_cluster.kafka_broker import shared_properties

LABELLED = f"/opt/hadoop/conf/{hadoop_conf.LABELS}"
"""The folder with the queues of a cluster with node labels."""
STATE = "/state"
"""LOGGED_STORE_BASE_DIR on every node: the mount point of its volume."""
_CONF = "/opt/hadoop/conf"
_ALL = "0.0.0.0"  # noqa: S104 - of a container, whose network is its own
_HOST = "${env.HOSTNAME:-localhost}"


def write(folder: Path) -> None:
    """Write all files into ``folder``; those of a cluster with locks into ``secure`` below it."""
    _write(folder, _core_site(), _hdfs_site(), _yarn_site(), _kafka())
    _write(
        folder / "secure",
        _core_site() | secure_settings.core_site(),
        _hdfs_site() | secure_settings.hdfs_site(),
        _yarn_site() | secure_settings.yarn_site(),
        _kafka() | secure_settings.kafka(),
    )


def _write(
    folder: Path,
    core: Mapping[str, object],
    hdfs: Mapping[str, object],
    yarn: Mapping[str, object],
    kafka: Mapping[str, object],
) -> None:
    folder.mkdir(parents=True)
    for name, values in (("core-site.xml", core), ("hdfs-site.xml", hdfs), ("yarn-site.xml", yarn)):
        (folder / name).write_text(hadoop_conf.site_xml(values), encoding="utf-8")
    hadoop_conf.write_queues(folder)
    labelled = folder / hadoop_conf.LABELS
    labelled.mkdir()
    hadoop_conf.write_queues(labelled, labels=True)
    (folder / "log4j.properties").write_text(hadoop_conf.LOG4J, encoding="utf-8")
    text = "".join(f"{key}={value}\n" for key, value in kafka.items())
    (folder / "kafka.properties").write_text(text, encoding="utf-8")
    (folder / "zoo.cfg").write_text(_zookeeper(), encoding="utf-8")


def _core_site() -> dict[str, object]:
    return {
        "fs.defaultFS": "hdfs://nn:9000",
        "hadoop.tmp.dir": "/data/tmp",
        "hadoop.http.staticuser.user": "nobody",
        "ipc.client.connect.max.retries": 3,
        "ipc.client.connect.max.retries.on.timeouts": 3,
        "ipc.client.connect.timeout": 5000,
    }


def _hdfs_site() -> dict[str, object]:
    return {
        "dfs.replication": 1,
        "dfs.namenode.name.dir": "file:///data/nn",
        "dfs.datanode.data.dir": "file:///data/dn",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.rpc-bind-host": _ALL,
        "dfs.namenode.http-bind-host": _ALL,
        "dfs.namenode.http-address": "nn:9870",
        # It leaves the safe mode as soon as the DataNode has reported its blocks.
        "dfs.namenode.safemode.extension": 0,
        "dfs.datanode.hostname": _HOST,
        "dfs.client.use.datanode.hostname": "true",
    }


def _yarn_site() -> dict[str, object]:
    fair = hadoop_conf.SCHEDULERS["fair"]
    return {
        **hadoop_conf.behaviour(),
        "yarn.resourcemanager.scheduler.class": f"${{env.YARN_SCHEDULER:-{fair}}}",
        "yarn.node-labels.enabled": "${env.YARN_NODE_LABELS:-false}",
        "yarn.resourcemanager.hostname": "rm",
        "yarn.resourcemanager.bind-host": _ALL,
        "yarn.resourcemanager.fs.state-store.uri": "file:///data/rm-state",
        "yarn.node-attribute.fs-store.root-dir": "file:///data/node-attributes",
        "yarn.node-labels.fs-store.root-dir": "file:///data/node-labels",
        "yarn.scheduler.fair.allocation.file": f"{_CONF}/fair-scheduler.xml",
        # The working directory comes first so that an application's own yarn-site.xml counts.
        "yarn.application.classpath": f".,{_CONF},/opt/hadoop/jars/*",
        "yarn.nodemanager.hostname": _HOST,
        "yarn.nodemanager.bind-host": _ALL,
        "yarn.nodemanager.address": f"{_HOST}:45454",
        "yarn.nodemanager.local-dirs": "/data/local",
        "yarn.nodemanager.log-dirs": "/data/container-logs",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH,LANG,TZ",
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.recovery.dir": "/data/recovery",
        "yarn.nodemanager.recovery.supervised": "true",
        "yarn.nodemanager.admin-env": "MALLOC_ARENA_MAX=2",
        "yarn.nodemanager.admin-env.LOGGED_STORE_BASE_DIR": STATE,
    }


def _kafka() -> dict[str, object]:
    """One broker: for the cluster at @INSIDE@, for other machines at @OUTSIDE@ (the role's)."""
    return {
        **shared_properties(1),
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": "1@kafka:9093",
        "listeners": "INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:19092,CONTROLLER://0.0.0.0:9093",
        "advertised.listeners": "INSIDE://@INSIDE@,OUTSIDE://@OUTSIDE@",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": (
            "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INSIDE",
        "log.dirs": "/data/kafka",
    }


def _zookeeper() -> str:
    return (
        "tickTime=500\ndataDir=/data/zookeeper\nclientPort=2181\nadmin.enableServer=false\n"
        "4lw.commands.whitelist=ruok\n"
    )
