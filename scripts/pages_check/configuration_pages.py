"""The pages about configuration, from the declarations of the keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from homeport.config.declarations import all_keys
from homeport.config.declarations.key_types import Key, Liveness
from homeport.config.declarations.reference import SHORT, default_text, type_text
from homeport.config.declarations.samza_keys import ALL as SAMZA_KEYS

INDEX = "docs/configuration.md"
FOLDER = "docs/configuration"
_SAMZA = f"{FOLDER}/samza.md"
_BY = "<!-- Written by scripts/pages --write from the declarations of the keys. -->\n"
_PIPE = r"\|"


@dataclass(frozen=True)
class Section:
    """A page: the keys whose names begin with one of ``starts``, but with none of ``but``."""

    name: str
    title: str
    starts: tuple[str, ...]
    but: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """Its path from the root."""
        return f"{FOLDER}/{self.name}.md"

    def declared(self) -> tuple[Key, ...]:
        """Its keys, in the order of their declarations."""
        return tuple(
            key
            for key in all_keys.ALL
            if key.name.startswith(self.starts) and not key.name.startswith(self.but)
        )


SECTIONS = (
    Section("job", "The job and its coordinator", ("app.", "job.", "processor.")),
    Section("task", "Tasks, inputs and transactions", ("task.",)),
    Section("systems", "Systems, streams and serdes", ("systems.", "serializers.")),
    Section(
        *("stores", "Stores"),
        starts=("stores.", "stores-default.", "adstore."),
        but=("stores.<store>.rocksdb.",),
    ),
    Section("rocksdb", "RocksDB of a store", ("stores.<store>.rocksdb.",)),
    Section("cluster", "Containers, hosts and YARN", ("cluster-manager.", "yarn.")),
    Section("metrics", "Metrics reporters", ("metrics.",)),
)
"""Every key is on one page."""


def pages() -> Mapping[str, str]:
    """{path from the root: text} of the index and of each section."""
    return {INDEX: _index(), **{s.page: _section(s) for s in SECTIONS}, _SAMZA: _samza()}


def _index() -> str:
    pages = [(s.page, s.title, len(s.declared())) for s in SECTIONS]
    pages.append((_SAMZA, "Keys of Samza that have no effect", len(SAMZA_KEYS)))
    return f"""{_BY}
# Configuration keys

A job's configuration is a properties file, then the `--config` options of `run-job`, then its
rewriters. A value that `coordinator-stream-writer` or `homeport config set` wrote stands above all
of them until it is deleted; what names programs, addresses or code must be
[in the file too](security-roles.md#what-the-coordinator-stream-may-do).

`run-job` and `run-local` refuse a key that begins as these do and that no program reads;
`--allow-unknown-keys` makes that a warning. Where no key names the brokers of `job.default.system`,
they are those of `$HOMEPORT_BOOTSTRAP_SERVERS`, which `homeport local env` sets.

{_table(("page", "about", "keys"), ((_link(p), t, str(n)) for p, t, n in pages))}

`homeport config reference PART` prints the keys whose names contain PART, with the source of each.

The column *a change* of a page shows what a change of the key means for a running job:

{_table(("a change", "means"), ((SHORT[live], live.value) for live in Liveness))}

A part of a name in angle brackets stands for a name of the job's own: `stores.<store>.changelog` is
`stores.counts.changelog` for the store `counts`.
"""


def _section(section: Section) -> str:
    heads = ("key", "type", "default", "a change", "meaning")
    return f"{_head(section.title)}\n{_table(heads, map(_row, section.declared()))}\n"


def _row(key: Key) -> Iterator[str]:
    older = "".join(f"; older name: `{name}`" for name in key.legacy)
    yield from (f"`{key.name}`", type_text(key), default_text(key), SHORT[key.liveness])
    yield f"{key.meaning}{older}"


def _samza() -> str:
    alike: dict[tuple[str, str], list[str]] = {}
    for key in SAMZA_KEYS:
        alike.setdefault((key.reason, key.remedy), []).append(f"`{key.name}`")
    rows = [(", ".join(names), *why) for why, names in alike.items()]
    refused = (row for row in rows if row[-1])
    warned = (row[:-1] for row in rows if not row[-1])
    return f"""{_head("Keys of Samza that have no effect")}
Without these a job would compute something else, so `run-job` refuses values that ask for it:

{_table(("keys", "why", "remedy"), refused)}

Of these `run-job` warns:

{_table(("keys", "why"), warned)}
"""


def _head(title: str) -> str:
    return f"{_BY}\n# {title}\n\nBack to [configuration keys](../configuration.md).\n"


def _link(page: str) -> str:
    name = page.removeprefix("docs/")
    return f"[{name}]({name})"


def _table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(c.replace('|', _PIPE) for c in cells)} |" for cells in lines)
