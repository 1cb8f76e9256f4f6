"""Names of folders, made of names that users choose.

PURE. Samza's own spelling wherever it is safe; what is not one path part is escaped, so that two
jobs never share a folder (safety K3).
"""

from urllib.parse import quote, unquote

from homeport.config.errors import StoreError

_LONGEST = 200


def job_folder(job_name: str, job_id: str) -> str:
    """Return ``<job.name>-<job.id>``, one path part.

    Hyphens of the name are kept where the id has none, so that names stay as Samza's; a hyphen of
    the id is escaped: ("a", "1-0") and ("a-1", "0") differ (safety K3).
    """
    return f"{path_part(job_name)}-{path_part(job_id).replace('-', '%2D')}"


def job_of_folder(folder: str) -> tuple[str, str] | None:
    """Return name and id of the job whose folder has that name; None: no job's has."""
    name, hyphen, job_id = (unquote(part) for part in folder.rpartition("-"))
    try:
        is_one = bool(hyphen) and job_folder(name, job_id) == folder
    except StoreError:
        return None
    return (name, job_id) if is_one else None


def path_part(text: str) -> str:
    """Return ``text`` as one path part; harmless names stay as they are.

    StoreError: it is too long for one.
    """
    escaped = "".join(_escaped(char) for char in text)
    if escaped in {"", ".", ".."}:
        escaped = escaped.replace(".", "%2E") or "%00"
    if len(escaped.encode()) > _LONGEST:
        raise StoreError(f"{text[:60]!r}... is longer than the {_LONGEST} bytes of a path part")
    return escaped


def _escaped(char: str) -> str:
    unsafe = char in "%/\\" or not char.isprintable()
    return quote(char, safe="", errors="surrogatepass") if unsafe else char
