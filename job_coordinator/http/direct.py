"""HTTP requests to neighbours, which use no proxy that the environment names."""

import urllib.request
from typing import Final

OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
