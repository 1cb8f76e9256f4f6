"""HTTP requests to neighbours, which use no proxy that the environment names."""

from __future__ import annotations

import urllib.request
from typing import Final

OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
