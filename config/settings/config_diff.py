"""What changed between two configurations, by what the change means for a job that runs.

PURE. Two values that are written differently and mean the same (``yes`` and ``true``, a Java class
and our name for it, a key that is missing and its default, a legacy name) are no change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, Liveness, TokensKey
from homeport.config.declarations.unknown_keys import is_unread

_SERDE_KEYS = (keys.STORE_KEY_SERDE, keys.STORE_MSG_SERDE)
_OF_A_STORE = "stores.<store>."


@dataclass(frozen=True)
class ConfigDiff:
    """Full names of the keys that changed, sorted, by ``Liveness``.

    A legacy key has its present name. A key that is not declared is the user's own, which
    containers read when they start, or one of ``unread``, which no program reads. A key that never
    changes with state needs a redeploy where there is none: in a job without a changelog, and for a
    store that only one of the two configurations has. Without a changelog such a store is read by
    containers alone, so that each of its keys restarts them.
    """

    live: tuple[str, ...] = ()
    retunes_containers: tuple[str, ...] = ()
    restarts_containers: tuple[str, ...] = ()
    needs_redeploy: tuple[str, ...] = ()
    never_with_state: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @staticmethod
    def between(before: Config, after: Config) -> ConfigDiff:
        """Return what is different in ``after``."""
        found: dict[Liveness, list[str]] = {liveness: [] for liveness in Liveness}
        unread: list[str] = []
        for name in sorted(_candidates(before, after)):
            key = keys.declared(name)
            if _meant(before, key, name) == _meant(after, key, name):
                continue
            if is_unread(name):
                unread.append(name)
            else:
                found[_liveness(before, after, key, name)].append(name)
        of_liveness = {each.name.lower(): tuple(names) for each, names in found.items()}
        return ConfigDiff(**of_liveness, unread=tuple(unread))

    @property
    def is_of_tokens(self) -> bool:
        """Return whether tokens alone changed, which mend no failure and reach no container."""
        is_token = (isinstance(keys.declared(name), TokensKey) for name in self.live)
        return all(is_token) and self == ConfigDiff(live=self.live)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing changed."""
        return self == ConfigDiff()


def effective(running: Config, wanted: Config, *, has_state: bool) -> Config:
    """Return what a job that runs with ``running`` uses once ``wanted`` is submitted to it.

    ``wanted``, in which keys that need a redeploy, those that no program reads, and where
    ``has_state`` those that are never changed with state, are as in ``running``.
    """
    diff = ConfigDiff.between(running, wanted)
    settled = diff.never_with_state if has_state else ()
    kept = (*diff.needs_redeploy, *diff.unread, *settled)
    values = dict(wanted)
    for name in kept:
        for spelling in spellings(name):
            values.pop(spelling, None)
            if spelling in running:
                values[spelling] = running[spelling]
    return Config(values)


def spellings(name: str) -> tuple[str, ...]:
    """Return the names of a declared key: the present one, and those from before."""
    key = keys.declared(name)
    return (name, *key.legacy) if key else (name,)


def _candidates(before: Config, after: Config) -> set[str]:
    names = {_present(n) for n in {*before, *after} if before.get(n) != after.get(n)}
    names |= {key.name for key in keys.ALL if key.fallback in names}
    # What a store's serde or changelog is may be said by another key.
    if keys.JOB_CHANGELOG_SYSTEM.name in names:
        names |= set(_named_by(keys.STORE_CHANGELOG, before, after))
    if any(keys.SERIALIZERS_REGISTRY_CLASS.matches(name) for name in names):
        for key in _SERDE_KEYS:
            names |= set(_named_by(key, before, after))
    return names


def _named_by(key: Key, *configs: Config) -> Iterable[str]:
    return (name for config in configs for name in config if key.matches(name))


def _present(name: str) -> str:
    key = keys.declared(name)
    return key.name if key and name in key.legacy else name


def _liveness(before: Config, after: Config, key: Key | None, name: str) -> Liveness:
    if key is None:
        return Liveness.RESTARTS_CONTAINERS
    parts = key.parts_of(name)
    store = parts[0] if parts and key.name.startswith(_OF_A_STORE) else ""
    has_store = [keys.STORE_FACTORY.is_set(c, store) for c in (before, after) if store]
    if any(has_store) and not all(has_store):
        changelog = keys.STORE_CHANGELOG.named(store)
        if changelog not in before and changelog not in after:
            return Liveness.RESTARTS_CONTAINERS
    if key.liveness is not Liveness.NEVER_WITH_STATE:
        return key.liveness
    if has_store:
        is_at_stake = all(has_store)
    else:
        is_at_stake = any(keys.STORE_CHANGELOG.matches(other) for other in before)
    return Liveness.NEVER_WITH_STATE if is_at_stake else Liveness.NEEDS_REDEPLOY


def _meant(config: Config, key: Key | None, name: str) -> str | None:
    if key is None:
        return config.get(name)
    text = config.get_str(key.given(config, *(key.parts_of(name) or ())))
    if text is None and key.fallback:
        text = config.get_str(key.fallback)
    if text is None:
        text = key.default_text or None
    if text is None:
        return None
    if key in _SERDE_KEYS:
        text = keys.SERIALIZERS_REGISTRY_CLASS.read(config, text) or text
    elif key is keys.STORE_CHANGELOG and "." not in text:
        text = f"{_meant(config, keys.JOB_CHANGELOG_SYSTEM, keys.JOB_CHANGELOG_SYSTEM.name)}.{text}"
    return key.plain(text)
