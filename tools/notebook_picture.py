"""Make docs/img/notebook.png: the cells of docs/notebooks.md, run by Jupyter, as a browser shows the page.

Needs Chromium, and what ``make install`` installs. Usage: ``python tools/notebook_picture.py``
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = ROOT / "docs" / "notebooks.md", ROOT / "docs" / "img" / "notebook.png"
WIDTH = 900


def executed(folder: Path) -> str:
    """Return the executed notebook as one page of HTML."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    cells = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.rstrip()) for cell in cells])
    client = NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}})
    asyncio.run(client.async_execute())
    html: str = HTMLExporter().from_notebook_node(book)[0]
    return html.replace(str(folder), "/home/me")  # where the run lies says nothing to a reader


def main() -> None:
    """Run the notebook and take its picture."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("needs Chromium: apt install chromium")
    with tempfile.TemporaryDirectory() as place:
        page_file = Path(place) / "notebook.html"
        page_file.write_text(executed(Path(place)), "utf-8")
        with sync_playwright() as playwright:
            opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = opened.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=1.5, offline=True)
            page.goto(page_file.as_uri(), wait_until="domcontentloaded")
            page.screenshot(path=PICTURE, full_page=True)
            opened.close()
    Image.open(PICTURE).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
