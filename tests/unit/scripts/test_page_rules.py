"""Dead links, dead modules, lost pages and long pages are found, and nothing else."""

from __future__ import annotations

import pytest

from pages_check.markdown import Link, anchors, links
from pages_check.page_rules import Tree, findings

FILES = ("scripts/run", "config/keys.py")


def found(pages: dict[str, str]) -> list[str]:
    """The findings about these pages, in a tree that has ``FILES`` too."""
    return [str(finding) for finding in findings(Tree({*FILES, *pages}, pages))]


@pytest.mark.parametrize(
    "link",
    [
        "[a](docs/a.md)",
        "[a](docs/a.md#two-words)",
        "[a](docs/a.md#k1)",
        '[a](docs/a.md "title")',
        "[a]: docs/a.md",
        "[here](#front)",
        "[source](config/keys.py#L3-L9)",
        "[folder](scripts)",
        "[folder](docs/)",
        "[site](https://example.org/no#where)",
        "`[code](none.md)`",
        "```\n[code](none.md)\n```",
        "<!-- [left out](none.md) -->",
    ],
)
def test_a_link_that_leads_somewhere_is_no_finding(link: str) -> None:
    """Pages, anchors, lines of a source, folders, other sites; and what is no link."""
    page = '# A\n\n## Two `words`!\n\n<a id="k1"></a>**K1**\n'
    pages = {
        "README.md": f"# Front\n\n[docs](docs/README.md)\n\n{link}\n",
        "docs/README.md": "[a](a.md) [front](../README.md)\n",
        "docs/a.md": page,
    }
    assert found(pages) == []


@pytest.mark.parametrize(
    ("link", "finding"),
    [
        ("none.md", "link to none.md, which does not exist: name a file of this repository"),
        ("../a", "link to ../a, which does not exist: name a file of this repository"),
        ("#no", "link to #no, but README.md has no anchor no: name one that it has"),
        ("scripts/run#x", "link to scripts/run#x, which has no anchors: leave out #x"),
        ("scripts#x", "link to scripts#x, which has no anchors: leave out #x"),
        ("/docs", "link to /docs begins at no page: write it relative to this page"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(link: str, finding: str) -> None:
    """With page, line and remedy."""
    assert found({"README.md": f"# Front\n\n[x]({link})\n"}) == [f"README.md:3: {finding}"]


@pytest.mark.parametrize(
    "named",
    [
        "`config/keys.py`",
        "`keys.py`",
        "`my_job/task.py`",
        "`config/`",
        "config/old.py",
        "`a b/c.py`",
    ],
)
def test_a_module_that_exists_or_is_a_readers_own_is_no_finding(named: str) -> None:
    """From any folder down; what is no path of a module is not looked up."""
    assert found({"README.md": f"# Front\n\n{named}\n"}) == []


@pytest.mark.parametrize("named", ["config/old.py", "scripts/keys.py"])
def test_a_named_module_that_does_not_exist_is_found(named: str) -> None:
    """Its first folder is one of the repository."""
    fault = f"names {named}, which does not exist: name the module that does this now"
    assert found({"README.md": f"# Front\n\nin `{named}`\n"}) == [f"README.md:3: {fault}"]


def test_a_page_that_no_links_reach_is_found() -> None:
    """Also where lost pages link to each other."""
    pages = {
        "README.md": "[a](a/README.md)\n",
        "a/README.md": "[b](../b.md)\n",
        "b.md": "",
        "c.md": "[d](d.md)\n",
        "d.md": "[c](c.md)\n",
    }
    lost = "no links lead from README.md to this page: link to it, or drop it"
    assert found(pages) == [f"c.md:1: {lost}", f"d.md:1: {lost}"]


@pytest.mark.parametrize(
    ("page", "limit_kb"),
    [
        ("README.md", 8),
        ("CONTRIBUTING.md", 12),
        ("docs/a.md", 12),
        ("docs/decisions/a.md", 12),
        ("docs/README.md", 12),
        ("config/README.md", 5),
    ],
)
def test_a_page_over_its_size_is_found(page: str, limit_kb: int) -> None:
    """A byte more than its limit; with the line where the limit is passed."""
    text = f"[x]({'.' if page == 'README.md' else '/'.join(['..'] * page.count('/') or ['.'])})\n"
    text += "x" * 99 + "\n"
    full = text + "y" * (limit_kb * 1024 - len(text))
    front = {"README.md": f"[p]({page})\n"}
    assert found({**front, page: full}) == []
    (finding,) = found({**front, page: f"{full}yy"})
    fault = f"{limit_kb * 1024 + 2} bytes, 2 over its limit of {limit_kb} KB"
    assert finding == f"{page}:3: {fault}: shorten it, or split it"


def test_size_counts_bytes() -> None:
    """As a file's size does, not characters."""
    assert len(found({"README.md": "é" * 4097})) == 1


def test_links_are_found_with_their_lines() -> None:
    """Several in a line, images, definitions; lines within code blocks are counted."""
    page = "[a](b.md) ![c](d.png)\n```\n[e](f)\n~~~\n```\n[g]: <h.md>\n[i](j_(k).md)\n"
    assert list(links(page)) == [
        Link("b.md", 1),
        Link("d.png", 1),
        Link("h.md", 6),
        Link("j_(k).md", 7),
    ]


def test_anchors_of_headings_are_those_of_github() -> None:
    """Punctuation goes, spaces become hyphens, a repeated heading is numbered."""
    page = "# A `b`, c: d_e-f\n## [Link](x.md) (two)\n## Same\n### Same ###\n```\n# code\n```\n"
    assert anchors(page) == {"a-b-c-d_e-f", "link-two", "same", "same-1"}
