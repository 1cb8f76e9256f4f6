"""The name of a package, and what its zip may have."""

from __future__ import annotations

import io
import random
import zipfile

import pytest
from zipped import sha256_of, zipped

from homeport.config.errors import WireError
from homeport.job_coordinator.model import job_package
from homeport.job_coordinator.model.job_package import (
    ENVIRONMENT_NAME,
    PackageContents,
    contents_of,
    is_package_name,
    package_entries,
    require_readable,
    with_environment,
)

NAME = "0123456789abcdef" * 4


def test_a_name_is_a_sha256_in_lower_case() -> None:
    """64 digits, and nothing beside them: a launcher names a folder after it."""
    assert is_package_name(NAME)
    for other in ("", NAME[1:], NAME + "0", NAME.upper(), NAME + "\n", "../" + NAME[3:]):
        assert not is_package_name(other)


def test_a_package_has_the_entries_of_its_zip() -> None:
    """Folders too; an empty zip is one."""
    found = package_entries(zipped({"tasks.py": "1", "lib/": "", "lib/a..b.py": "2"}))
    assert [entry.filename for entry in found] == ["tasks.py", "lib/", "lib/a..b.py"]
    assert package_entries(zipped({})) == []


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/x", "..", "a/..", "a\\..\\x", "C:\\x", "."]
)
def test_no_entry_leads_outside(name: str) -> None:
    """Refused as a whole, in one line that names the entry."""
    with pytest.raises(WireError, match="the package has an entry outside it: ") as caught:
        package_entries(zipped({"tasks.py": "1", name: "2"}))
    assert repr(name) in str(caught.value)


def test_an_entry_has_a_name() -> None:
    """A name ends at its first zero byte."""
    data = zipped({"lib/": "", "tasks.py": "1"}).replace(b"tasks.py", b"\0asks.py")
    with pytest.raises(WireError, match="the package has an entry outside it: ''"):
        package_entries(data)


def test_a_damaged_zip_is_refused_or_has_entries_of_a_package() -> None:
    """Whatever byte is another one, or missing, no other error comes: a tool has one line then."""
    whole = zipped({"tasks.py": "1" * 60, "lib/": "", "lib/b.py": "2"})
    drawn = random.Random(3)  # noqa: S311 - equal in each run
    directory = whole.index(b"PK\x01\x02")
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(drawn.choice([1, 1, 2, 4, 8])):
            first = 0 if drawn.random() < 0.2 else directory
            data[drawn.randrange(first, len(data))] = drawn.choice([0, drawn.randrange(256)])
        if drawn.random() < 0.1:
            del data[drawn.randrange(len(data)) :]
        try:
            package_entries(bytes(data))
        except WireError:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize("files", [("a", "a/b"), ("a/b/c", "a"), ("a", "a/"), ("a/b", "a/b/c/d")])
def test_no_entry_is_below_a_file(files: tuple[str, ...]) -> None:
    """No disk has a file and a folder of one name; alike names are no such."""
    package_entries(zipped({"a": "1", "ab/c": "2", "b/a": "3"}))
    with pytest.raises(WireError, match="the package has a file and a folder of one name: 'a"):
        package_entries(zipped(dict.fromkeys(files, "")))


def test_what_cannot_be_unpacked_is_refused() -> None:
    """Before it is on its way: damage, and ways to compress that this Python does not know."""
    require_readable(zipped({"tasks.py": "1" * 99}))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("tasks.py", bytes(range(256)) * 12)
    damaged = bytearray(packed.getvalue())
    damaged[60:90] = b"\xff" * 30
    with pytest.raises(WireError, match="the package cannot be unpacked: LZMAError: Corrupt input"):
        require_readable(bytes(damaged))
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr("tasks.py", "unchanged")
    with pytest.raises(WireError, match=r"the package has a damaged entry: 'tasks\.py'"):
        require_readable(stored.getvalue().replace(b"unchanged", b"unchanfed"))


def test_what_is_no_zip_is_refused() -> None:
    """In one line."""
    for data in (b"", b"no zip", zipped({"a": "1"})[:-30]):
        with pytest.raises(WireError, match="the package is no zip: ") as caught:
            package_entries(data)
        assert "\n" not in str(caught.value)


def test_an_encrypted_entry_is_refused() -> None:
    """The launcher has no password."""
    data = bytearray(zipped({"tasks.py": "1"}))
    at = data.index(b"PK\x01\x02") + 8  # the flags in the directory of the zip
    data[at] |= 1
    with pytest.raises(WireError, match=r"the package has an encrypted entry: 'tasks\.py'"):
        package_entries(bytes(data))


def test_a_package_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a zip, and unpacked: equal bytes are next to nothing in a zip."""
    data = zipped({"zeros": "0" * 10_000})
    monkeypatch.setattr(job_package, "MAX_UNPACKED_BYTES", 10_000)
    package_entries(data)
    monkeypatch.setattr(job_package, "MAX_UNPACKED_BYTES", 9_999)
    with pytest.raises(WireError, match="the package has files of 10000 bytes, more than 9999"):
        package_entries(data)
    monkeypatch.setattr(job_package, "MAX_BYTES", len(data) - 1)
    with pytest.raises(WireError, match=f"a package of {len(data)} bytes is larger than"):
        package_entries(data)


def test_a_package_may_name_an_environment() -> None:
    """Its code keeps its name through each of them; the same two are the same bytes."""
    code = zipped({"tasks.py": "1", "lib/": "", "lib/run.sh": "#!/bin/sh"}, 0o755)
    assert contents_of(code) == PackageContents(sha256_of(code))
    one, two = with_environment(code, "/one"), with_environment(code, "/two")
    assert contents_of(one) == PackageContents(sha256_of(code), "/one")
    assert contents_of(two) == PackageContents(sha256_of(code), "/two")
    assert with_environment(one, "/two") == two
    names = ["tasks.py", "lib/", "lib/run.sh", ENVIRONMENT_NAME]
    entries = package_entries(two)
    assert [entry.filename for entry in entries] == names
    assert [entry.external_attr >> 16 & 0o777 for entry in entries[:1]] == [0o755]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"python": 1, "code": "x"}',
        '{"python": "/e", "code": "x"}',
        f'{{"python": "", "code": "{NAME}"}}',
    ],
)
def test_a_damaged_environment_is_none(content: str) -> None:
    """Nothing runs with it."""
    with pytest.raises(WireError, match="names no environment"):
        contents_of(zipped({ENVIRONMENT_NAME: content}))
