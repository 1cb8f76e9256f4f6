"""The client's homeport: the tree of the environment that is packed, as hard links, mounted.

The client runs what the hosts unpack, but has nothing to unpack itself. A cluster has links of its
own, so that its client keeps its commands where the cache removes the tree.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from homeport.appmaster.environment.pack import Packed


def place(folder: Path, packed: Packed) -> None:
    """The tree is ``<folder>/<identity>``, whole; those of earlier environments are gone.

    ``folder`` is on the file system of the cache. A running client sees it as ``/homeport/trees``.
    """
    target = folder / packed.identity
    if not target.exists():
        partial = folder / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(packed.tree, partial, symlinks=True, copy_function=os.link)
        partial.replace(target)
    for other in folder.iterdir():
        if other != target:
            shutil.rmtree(other)
