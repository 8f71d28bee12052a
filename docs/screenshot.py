"""Takes the picture of a report in the README: digits on paper, in headless Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

OUT = Path(__file__).parent / "report.png"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
COMMANDS = (
    "datasets write digits-on-paper --out digits",
    "fit digits/train.csv --label label --environment environment --test digits/test.csv"
    " --out model.isr --report report.html",
)


def main() -> None:
    """Writes docs/report.png."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("needs a browser: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for command in COMMANDS:
            isr = [sys.executable, "-c", "from isrlearn.cli import main; main()"]
            subprocess.run([*isr, *command.split()], cwd=folder, check=True, capture_output=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
        page.goto((Path(folder) / "report.html").as_uri())
        box = page.locator("#stability").bounding_box()
        clip = {"x": 0, "y": 0, "width": 1100, "height": box["y"] + box["height"] + 16}
        picture = page.screenshot(full_page=True, clip=clip)
        browser.close()
    # A palette is enough for a page, and a third of the size.
    Image.open(BytesIO(picture)).convert("RGB").quantize(64).save(OUT, optimize=True)


if __name__ == "__main__":
    main()
