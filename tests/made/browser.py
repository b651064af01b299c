"""A real browser: pages as their readers see them, and what axe-core says of them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from conftest import needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
PHONE, DESKTOP = 390, 1280
TOO_WIDE = """() => {
    const page = document.scrollingElement;
    const boxes = [...document.body.querySelectorAll("*")].filter((box) =>
        box.getBoundingClientRect().right > page.clientWidth + 1 && box.checkVisibility());
    return page.scrollWidth <= page.clientWidth ? null : boxes.slice(0, 3).map((box) =>
        `${page.scrollWidth} px wide: ${box.cloneNode().outerHTML}`).join(" ");
}"""


@contextmanager
def launched() -> Iterator["Browser"]:
    """Start the browser; skip the test without one, or fail it under EMS_NO_SKIP."""
    needs(CHROMIUM, "no browser: apt-get install chromium-headless-shell")
    needs(find_spec("playwright"), "playwright is not installed: pip install '.[dev]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: "Browser", address: str | Path, dark: bool = False, width: int = DESKTOP
) -> Iterator[tuple["Page", list[str]]]:
    """Yield a page, and a list that collects its console, errors and requests to other hosts."""
    address = address.resolve().as_uri() if isinstance(address, Path) else address
    home = address.split("/")[:3]
    size, scheme = {"width": width, "height": 844}, "dark" if dark else "light"
    page = browser.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    said: list[str] = []

    def check(request) -> None:
        if not request.url.startswith(("data:", "blob:")) and request.url.split("/")[:3] != home:
            said.append(f"loads {request.url}")

    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", check)
    page.goto(address)
    yield page, said
    page.close()


def findings(
    browser: "Browser",
    address: str | Path,
    dark: bool = False,
    width: int = DESKTOP,
    ready: str = "",
) -> list[str]:
    """Return the faults of a page, a line each, once it shows `ready`.

    These are violations of accessibility, messages in the console, requests to other hosts, and a
    page that scrolls sideways.
    """
    with opened(browser, address, dark, width) as (page, said):
        if ready:
            page.locator(ready).first.wait_for()
            page.wait_for_timeout(500)  # until it has faded in
        if boxes := page.evaluate(TOO_WIDE):
            said.append(boxes)
        said += violations(page)
    return said


def violations(page: "Page", impacts: tuple[str, ...] = ("serious", "critical")) -> list[str]:
    """Return the findings of axe-core in an open page that have one of these impacts."""
    page.evaluate(_axe())
    options = {"resultTypes": ["violations"], "iframes": False, "preload": False}
    rules = page.evaluate("(options) => axe.run(document, options)", options)["violations"]
    return [
        f"{rule['impact']} {rule['id']}: {node['target'][-1]}: {_reason(node)}"
        for rule in rules
        if rule["impact"] in impacts
        for node in rule["nodes"]
    ]


def _reason(node: dict) -> str:
    checks = node["any"] + node["all"] + node["none"]
    return "; ".join(check["message"] for check in checks)


@cache
def _axe() -> str:
    """Return the script of axe-core."""
    needs(find_spec("axe_playwright_python"), "axe is not installed: pip install '.[dev]'")
    from axe_playwright_python.base import AXE_SCRIPT

    return AXE_SCRIPT
