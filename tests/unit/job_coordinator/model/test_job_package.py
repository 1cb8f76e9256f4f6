"""The name of a package."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.model.job_package import is_package_name, optional_package

NAME = "0123456789abcdef" * 4


def test_a_name_is_a_sha256_in_lower_case() -> None:
    """64 digits, and nothing beside them: a launcher names a folder after it."""
    assert is_package_name(NAME)
    for other in ("", NAME[1:], NAME + "0", NAME.upper(), NAME + "\n", "../" + NAME[3:]):
        assert not is_package_name(other)


def test_a_field_has_a_name_or_none() -> None:
    """Absent and null are none; anything else is refused in one line."""
    assert optional_package({"package": NAME}, "package") == NAME
    assert optional_package({"package": None}, "package") is None
    assert optional_package({}, "package") is None
    with pytest.raises(WireError, match=r"'package' is no sha256 in lower-case digits: '\.\./x'"):
        optional_package({"package": "../x"}, "package")
    with pytest.raises(WireError, match="package"):
        optional_package({"package": 1}, "package")
