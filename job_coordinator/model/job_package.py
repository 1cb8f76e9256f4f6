"""The name of a package of the job's code: the sha256 of its zip.

PURE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from homeport.config.errors import WireError
from homeport.job_coordinator.model.json_values import optional_field, shown

_SHA256 = re.compile("[0-9a-f]{64}")


def is_package_name(text: str) -> bool:
    """Whether ``text`` is a sha256 in lower-case hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


def optional_package(body: Mapping[str, Any], field_name: str) -> str | None:
    """The name in that field; None where there is none.

    Raises:
        WireError: the field has something else. A launcher names a folder after it.
    """
    name = optional_field(body, field_name, str)
    if name is not None and not is_package_name(name):
        raise WireError(f"field {field_name!r} is no sha256 in lower-case digits: {shown(name)}")
    return name
