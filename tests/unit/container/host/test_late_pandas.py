"""Arrow without pandas: as long as nothing else imports it, and as ever from then on."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BEGIN = """
import sys
import pyarrow as pa
from homeport.container.host.late_pandas import without_pandas
{before}
without_pandas()
without_pandas()
"""


def _printed(program: str, before: str = "") -> list[str]:
    """What a process of its own prints: this one has pandas."""
    text = _BEGIN.format(before=before) + program
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_arrays_and_tables_need_no_pandas() -> None:
    """Values go in and come out, and are computed with."""
    program = """
import pyarrow.compute as pc
table = pa.Table.from_pylist([{"a": 1}, {"a": None}])
print(pc.sum(table["a"]), pa.array([1.5]).to_numpy()[0], "pandas" in sys.modules)
"""
    assert _printed(program) == ["1", "1.5", "False"]


@pytest.mark.parametrize(
    "way",
    [
        "import pandas as pd",
        "pa.table({'a': [1]}).to_pandas(); import pandas as pd",
        (
            "import threading; t = threading.Thread(target=__import__, args=['pandas']);"
            " t.start(); t.join(); import pandas as pd"
        ),
    ],
)
def test_arrow_knows_a_series_once_pandas_is_imported(way: str) -> None:
    """NaN is no value in a Series, and one in a list; the module has its own loader."""
    program = f"""
{way}
print(pa.array(pd.Series([1.0, float("nan")])).null_count, pa.array([float("nan")]).null_count)
print(type(pd.__loader__).__name__, type(pd.__spec__.loader).__name__)
"""
    assert _printed(program) == ["1", "0", "SourceFileLoader", "SourceFileLoader"]


def test_a_process_that_needs_pandas_has_it_beside_its_other_work() -> None:
    """Else it has none; a pipeline needs it."""
    program = """
import threading
from homeport.container.host.late_pandas import choose_pandas
choose_pandas(is_needed={needed})
[thread.join() for thread in threading.enumerate() if thread.name == "arrow"]
print("pandas" in sys.modules)
"""
    begin = "import sys\n"
    for needed in (True, False):
        text = begin + program.format(needed=needed)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True)
        assert done.stdout.decode().split() == [str(needed)]


def test_a_process_that_has_waited_without_pandas_gets_it_at_its_start() -> None:
    """As the spare of a job with a pipeline; Arrow knows it then."""
    program = """
from homeport.container.host.late_pandas import with_pandas
print("pandas" in sys.modules)
with_pandas()
print("pandas" in sys.modules, pa.array(sys.modules["pandas"].Series([float("nan")])).null_count)
"""
    assert _printed(program, "import sys") == ["False", "True", "1"]


def test_pandas_that_is_here_stays_known() -> None:
    """Nothing is changed then."""
    program = """
import pandas as pd
print(pa.array(pd.Series([1.0, float("nan")])).null_count, len(sys.meta_path) == found)
"""
    assert _printed(program, "import pandas; found = len(sys.meta_path)") == ["1", "True"]


def test_a_process_without_pandas_says_so() -> None:
    """As it would without this."""
    program = """
sys.path[:] = []
sys.path_importer_cache.clear()
try:
    import pandas
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert _printed(program) == ["pandas"]
