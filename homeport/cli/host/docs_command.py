"""``homeport docs``: the pages of this version, which the wheel has."""

from importlib import resources
from pathlib import Path

import typer

from homeport.cli.options import described, new_app
from homeport.config.errors import ConfigError

app = new_app()


@app.command()
@described(page=typer.Argument(help="Such as getting-started; without it, the list of pages."))
def docs(page: str = "README") -> None:
    """Prints a page of the documentation of this version, as Markdown."""
    folder = Path(str(resources.files("homeport"))) / "docs"
    name = page.removeprefix("docs/").removesuffix(".md")
    known = {str(path.relative_to(folder))[:-3]: path for path in folder.rglob("*.md")}
    if name not in known:
        raise ConfigError("PAGE", page, "there is no such page", "homeport docs prints their list")
    print(known[name].read_text(encoding="utf-8"), end="")
