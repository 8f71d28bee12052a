"""Opens every page of the built site in Chromium: no error, no request outside, no dead link.

`python docs/check_site.py build/docs`; without a browser only links are checked.
"""

from __future__ import annotations

import shutil
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = (
    "--no-sandbox",  # Chromium's sandbox does not work for root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Page(HTMLParser):
    """The links of a page, and the anchors that other pages can link to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes addresses and ids."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def pages_of(site: Path) -> list[Path]:
    """Pages of the site; files in _static belong to the theme."""
    return [p for p in sorted(site.rglob("*.html")) if "_static" not in p.relative_to(site).parts]


def dead_links(site: Path) -> list[str]:
    """Links inside the site that lead nowhere, including missing anchors."""
    pages = {path.relative_to(site).as_posix(): Page(path) for path in pages_of(site)}
    dead = []
    for name, page in pages.items():
        for link in page.links:
            parts = urlsplit(urljoin(f"http://site/{name}", link))
            if parts.netloc != "site":
                continue
            target = unquote(parts.path).lstrip("/")
            target += "index.html" if target.endswith("/") else ""
            there = target in pages or (site / target).exists()
            known = parts.fragment in ("", *(pages[target].places if target in pages else ()))
            if not there or (target in pages and not known):
                dead.append(f"{name}: {link}")
    return dead


def complaints(site: Path) -> list[str]:
    """Errors, failures and requests to other hosts that the browser reports, by page."""
    from playwright.sync_api import sync_playwright

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_address[1]}/"
    found: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        tab = browser.new_page()
        tab.on("console", lambda said: said.type == "error" and found.append(said.text))
        tab.on("pageerror", lambda error: found.append(str(error)))
        tab.on(
            "requestfailed", lambda asked: aborted(asked) or found.append(f"failed: {asked.url}")
        )
        tab.on("response", lambda got: got.status >= 400 and found.append(f"missing: {got.url}"))
        tab.on(
            "request",
            lambda asked: asked.url.startswith((home, "data:")) or found.append(asked.url),
        )
        for path in pages_of(site):
            before = len(found)
            tab.goto(home + path.relative_to(site).as_posix(), wait_until="load")
            found[before:] = [f"{path.relative_to(site)}: {said}" for said in found[before:]]
        browser.close()
    server.shutdown()
    return found


def aborted(asked: Any) -> bool:
    """Whether a request ended because the next page was opened."""
    return asked.failure == "net::ERR_ABORTED"


def main() -> None:
    """Exits with an error if anything was found."""
    site = Path(sys.argv[1])
    wrong = dead_links(site)
    if CHROMIUM is None:
        print("no chromium: pages were not opened, only their links checked")
    else:
        wrong += complaints(site)
    print(f"{len(pages_of(site))} pages checked, {len(wrong)} faults")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
