"""Keys of a configuration that do nothing, and which key may have been meant.

PURE. Four kinds: names of Samza's that have no effect here, or are refused; older names beside the
present one; keys that are gone; and names that begin as ours do and are none. Any other unknown
key is the user's own: it reaches the job's code, as in Samza.
"""

import difflib
import functools
import re
from collections.abc import Iterator

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key, literal_text
from homeport.config.declarations.samza_keys import SamzaKey, known_to_samza
from homeport.config.errors import ConfigError

ALLOW = "--allow-unknown-keys"
UNREAD = "no program reads this key"
REMOVED = {"cluster-manager.hosts": "each request names its host, also one that joins later"}
"""{key of the minor version before: what is in its place}; the next one refuses it as unknown."""
_NEAR = 0.84
"""How alike (difflib's ratio) two names must be for one to pass for a misspelling of the other."""
_NEAR_TOPIC = 0.75
_MOST = 20
"""Unknown keys that are listed one by one: a job may have thousands of its own."""
_PLACE = re.compile(r"<\w+>")
_TOPICS = tuple(topic.removesuffix(".") for topic in keys.TOPICS)


def warnings_about(config: Config, *names: str) -> tuple[str, ...]:
    """Return a line for each key of ``config`` that looks like one of ours and has no effect.

    ``names``: the keys to judge; none: all.

    ConfigError: a key of Samza's has a value without which the job would compute something else.
    """
    found: list[str] = []
    unknown: list[str] = []
    for name in names or config:
        key, samza_key = meant_key(name)
        if key is not None:
            if name in key.legacy and config.get_str(key.name) is not None:
                found.append(f"{name} has no effect: {key.name}, its present name, is set too")
            continue
        if name in REMOVED:
            found.append(
                f"{name} is no key any more, and has no effect: {REMOVED[name]}; remove it"
            )
            continue
        if samza_key is None:
            unknown.append(name)
            continue
        objection = samza_key.objection(config, name)
        if objection is not None:
            found.append(objection)
    return (*found, *_said(unknown))


def is_unread(name: str) -> bool:
    """Return whether no program reads the key: it is neither ours nor the job's own.

    A key of the job's own, which its code reads, begins with another word than ours do.
    """
    key, samza_key = meant_key(name)
    if key is not None or samza_key is not None:
        return key is None
    if name in REMOVED:
        return True
    return name.startswith(keys.TOPICS) or meant_by(name) is not None


def require_known(config: Config) -> None:
    """Require that a program reads each key that begins, or nearly so, as ours do; or Samza's.

    For a job's own file: a key of high availability that is misspelt starts the job without it.
    ConfigError: the first key that no program reads.
    """
    for name, value in config.items():
        if meant_key(name) == (None, None) and name not in REMOVED and is_unread(name):
            raise ConfigError(name, value, UNREAD, f"{correction(name)}, or allow it by {ALLOW}")


def correction(name: str) -> str:
    """Return the remedy for a key that no program reads."""
    if name in REMOVED:
        return f"remove it: {REMOVED[name]}"
    near = meant_by(name)
    if near is not None:
        return f"write {near}, if that is meant"
    return "begin the name of a key of the job's own with another word"


def meant_key(name: str) -> tuple[Key | None, SamzaKey | None]:
    """Return our key of that name, else Samza's without effect; at most one of the two.

    Where both match, as for systems.s.default.stream.x, the key with the longer fixed text counts.
    """
    key, samza_key = keys.declared(name), known_to_samza(name)
    if key is None or samza_key is None:
        return key, samza_key
    is_samzas = len(literal_text(samza_key.name)) > len(literal_text(key.name))
    return (None, samza_key) if is_samzas else (key, None)


def _said(unknown: list[str]) -> Iterator[str]:
    suspicious = [name for name in unknown if _topic_of(name) is not None]
    for name in suspicious[:_MOST]:
        meant = meant_by(name)
        if meant is not None:
            yield f"{name} is not a key of Homeport: did you mean {meant}?"
        elif name.startswith(keys.TOPICS):
            yield (
                f"{name} is not a key of Homeport: only the job's own code can read it, and a "
                "change of it does not reach a running job"
            )
    left = len(suspicious) - _MOST
    if left > 0:
        yield f"{left} more keys that begin like Homeport's are none of them"


def meant_by(name: str) -> str | None:
    """Return the key that ``name`` is nearly; None where it is like none.

    Parts in angle brackets are taken from ``name``: ``systems.a.samza.ofset.default`` is nearly
    ``systems.a.samza.offset.default``.
    """
    topic = _topic_of(name)
    if topic is None:
        return None
    given = name.split(".")
    best, best_ratio = None, _NEAR
    for key in keys.ALL:
        pattern = key.name.split(".")
        if pattern[0] != topic:
            continue
        values = _places(pattern, given)
        literal = ".".join(part for part in pattern if not _PLACE.fullmatch(part))
        rest = ".".join(part for i, part in enumerate(given) if all(i not in v for v in values))
        matcher = difflib.SequenceMatcher(None, rest, literal, autojunk=False)
        if matcher.real_quick_ratio() < best_ratio or matcher.quick_ratio() < best_ratio:
            continue
        if matcher.ratio() >= best_ratio:
            best_ratio = matcher.ratio()
            best = key.named(*(".".join(given[i] for i in taken) for taken in values))
    return best


def _topic_of(name: str) -> str | None:
    first, dot, _ = name.partition(".")
    return _near_topic(first) if dot else None


@functools.lru_cache(maxsize=1024)
def _near_topic(first: str) -> str | None:
    near = difflib.get_close_matches(first, _TOPICS, n=1, cutoff=_NEAR_TOPIC)
    return near[0] if near else None


def _places(pattern: list[str], given: list[str]) -> list[range]:
    """Return for each part in angle brackets the positions in ``given`` that it has, at least one.

    What ``given`` has too many goes to the last such part: names of topics have dots.
    """
    places = [i for i, part in enumerate(pattern) if _PLACE.fullmatch(part)]
    surplus = max(0, len(given) - len(pattern))
    return [
        range(place, place + 1 + (surplus if place == places[-1] else 0))
        for place in places
        if place < len(given)
    ]
