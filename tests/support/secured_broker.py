"""A Kafka of one broker that wants a user and a password, with rights of each user."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from homeport.job_coordinator.parent_death import die_with_parent
from homeport.local_cluster.jars import default_cache, ensure_jars
from homeport.local_cluster.kafka_broker import kafka_cluster_id, shared_properties

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
"""What makes each user but ``admin`` need rights; the controller has no user."""


def quoted(password: str) -> str:
    """The password as a login of Kafka has it."""
    return password.replace("\\", "\\\\").replace('"', '\\"')


def client_of(servers: str, user: str, password: str) -> dict[str, str]:
    """The properties of a client that logs in as that user."""
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def keys_of(user: str, password: str) -> dict[str, str]:
    """The keys by which a job logs in at its system ``kafka`` as that user."""
    login = f'{_MODULE} username="{user}" password="{quoted(password)}";'
    return {
        f"systems.kafka.{role}.{key}": value
        for role in ("consumer", "producer")
        for key, value in {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": login,
        }.items()
    }


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def secured_broker(
    folder: Path, users: Mapping[str, str], more: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of a broker that these users may use, {name: password}; it is the first itself.

    ``more``: properties of the broker, as ``RIGHTS``.
    """
    port, controller = _free_ports(2)
    itself = next(iter(users))
    known = " ".join(f'user_{name}="{quoted(text)}"' for name, text in users.items())
    login = f'{_MODULE} username="{itself}" password="{quoted(users[itself])}" {known};'
    values = {
        **shared_properties(1),
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"INSIDE://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INSIDE",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.inside.plain.sasl.jaas.config": login.replace("\\", "\\\\"),
        "log.dirs": folder / "kafka",
        **(more or {}),
    }
    settings = folder / "server.properties"
    settings.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    java = ["java", "-Xmx256m", "-cp", f"{ensure_jars(default_cache(), 'kafka')}/*"]
    identity = kafka_cluster_id(secrets.token_bytes(16))
    storage = ["kafka.tools.StorageTool", "format", "-t", identity, "-c", str(settings)]
    subprocess.run([*java, *storage], check=True, capture_output=True)
    first = partial(die_with_parent, os.getpid())
    with (
        (folder / "kafka.log").open("wb") as log,
        subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)],
            stdout=log,
            stderr=log,
            preexec_fn=first,  # noqa: PLW1509 - no lock is taken in it
        ) as broker,
    ):
        try:
            yield f"127.0.0.1:{port}"
        finally:
            broker.kill()
