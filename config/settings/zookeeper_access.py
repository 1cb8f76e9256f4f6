"""ZooKeeperAccess: what a job shows ZooKeeper, and which clients may change its nodes."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, TextKey
from homeport.config.declarations.standalone_keys import CREATOR, GSSAPI, OPEN

ENV, FILE = "env:", "file:"


@dataclass(frozen=True, slots=True)
class ZooKeeperTls:
    """Paths of PEM files, "" where there is none; ``key_password``: where it is."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = ""


@dataclass(frozen=True, slots=True)
class ZooKeeperAccess:
    """Views of the keys.

    ``password``: where it is, ``env:NAME`` or ``file:PATH``; it is never the secret itself, as the
    whole configuration goes into the coordinator stream. ``is_owned``: whether only clients that
    show the same user or certificate may read and change the job's nodes. ``tls``: None: no
    encryption.
    """

    scheme: str = ""
    username: str = ""
    password: str = ""
    is_owned: bool = False
    tls: ZooKeeperTls | None = None

    @staticmethod
    def of(config: Config) -> ZooKeeperAccess:
        """Return the view of ``config``.

        ConfigError: a key is missing, breaks its rule, or has no effect without another one.
        """
        scheme = keys.JOB_COORDINATOR_ZK_AUTH_SCHEME.read(config) or ""
        user, password = (
            keys.JOB_COORDINATOR_ZK_AUTH_USERNAME,
            keys.JOB_COORDINATOR_ZK_AUTH_PASSWORD,
        )
        if scheme in {"", GSSAPI}:
            unused = (password,) if scheme else (user, password)
            _refuse(config, unused, keys.JOB_COORDINATOR_ZK_AUTH_SCHEME, "digest or DIGEST-MD5")
        else:
            _require(
                config, (user, password), f"{keys.JOB_COORDINATOR_ZK_AUTH_SCHEME.name}={scheme}"
            )
        tls = _tls(config)
        has_identity = bool(scheme) or (tls is not None and bool(tls.certificate))
        acl = keys.JOB_COORDINATOR_ZK_ACL.read(config) or (CREATOR if has_identity else OPEN)
        if acl == CREATOR and not has_identity:
            raise keys.JOB_COORDINATOR_ZK_ACL.error(
                acl,
                "the nodes belong to a user or a certificate, and the job shows none",
                f"set {keys.JOB_COORDINATOR_ZK_AUTH_SCHEME.name} or "
                f"{keys.JOB_COORDINATOR_ZK_TLS_CERTIFICATE_PATH.name}, or write {OPEN}",
            )
        return ZooKeeperAccess(
            scheme=scheme,
            username=user.read(config) or "",
            password=_place(config, password),
            is_owned=acl == CREATOR,
            tls=tls,
        )


NO_ACCESS = ZooKeeperAccess()
"""Nothing is shown, and everybody may change the nodes."""


def _tls(config: Config) -> ZooKeeperTls | None:
    enabled = keys.JOB_COORDINATOR_ZK_TLS_ENABLED
    certificate = keys.JOB_COORDINATOR_ZK_TLS_CERTIFICATE_PATH
    key, password = keys.JOB_COORDINATOR_ZK_TLS_KEY_PATH, keys.JOB_COORDINATOR_ZK_TLS_KEY_PASSWORD
    ca = keys.JOB_COORDINATOR_ZK_TLS_CA_PATH
    if not enabled.read(config):
        _refuse(config, (ca, certificate, key, password), enabled, "true")
        return None
    for one, other in ((certificate, key), (key, certificate), (password, key)):
        if one.is_set(config):
            _require(config, (other,), one.name)
    return ZooKeeperTls(
        ca=ca.read(config) or "",
        certificate=certificate.read(config) or "",
        key=key.read(config) or "",
        key_password=_place(config, password),
    )


def _require(config: Config, wanted: tuple[TextKey, ...], by: str) -> None:
    for key in wanted:
        if not key.is_set(config):
            raise key.error(None, f"{by} needs it", f"set it, or remove {by}")


def _refuse(config: Config, unused: tuple[TextKey, ...], wanted: Key, text: str) -> None:
    for key in unused:
        if key.is_set(config):
            name = wanted.name
            rule = f"it has no effect without {name}={text}"
            raise key.error(key.read(config), rule, f"set {name}, or remove the key")


def _place(config: Config, key: TextKey) -> str:
    given = key.read(config) or ""
    if given and (not given.startswith((ENV, FILE)) or given in {ENV, FILE}):
        rule = "it must say where the secret is: the configuration goes into the coordinator stream"
        raise key.error(given, rule, f"write {ENV}NAME of an environment variable, or {FILE}PATH")
    return given


def secret_variables(config: Config) -> list[str]:
    """Return the environment variables that the keys name for ZooKeeper's secrets."""
    places = (keys.JOB_COORDINATOR_ZK_AUTH_PASSWORD, keys.JOB_COORDINATOR_ZK_TLS_KEY_PASSWORD)
    given = [key.read(config) or "" for key in places]
    return [place.removeprefix(ENV) for place in given if place.startswith(ENV)]
