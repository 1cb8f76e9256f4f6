"""Packages of a test's making."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping


def zipped(files: Mapping[str, str], permissions: int = 0o644) -> bytes:
    """A zip with these files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = permissions << 16
            archive.writestr(entry, text)
    return target.getvalue()


def sha256_of(data: bytes) -> str:
    """The name of that package."""
    return hashlib.sha256(data).hexdigest()
