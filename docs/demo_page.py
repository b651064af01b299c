"""Take pictures in a browser: docs/serve.png of `ems serve`, docs/align.png of the page of `ems
align`, docs/report.png of a report.

    make demo-page

needs a browser and fonts of all scripts (Debian: chromium-headless-shell, fonts-noto-core,
fonts-noto-cjk). Flags of `ems serve` may follow the name of the script. Without results/
report.html the last picture is left out.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
REPORT = ROOT / "results/report.html"
SIZE, TALL = {"width": 860, "height": 580}, {"width": 900, "height": 1000}
QUESTION = "Wo ist der Bahnhof?"
WARM = "the first answer of a server takes longer"


def main() -> None:
    words = ["serve", "--index", "examples/phrases.txt", "--port", "0", *sys.argv[1:]]
    command = [sys.executable, "-m", "ems", *words]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        try:
            browser = playwright.chromium.launch(executable_path=BROWSER)
            page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
            page.goto(server.stdout.readline().strip())
            for question in (WARM, QUESTION):
                page.get_by_role("searchbox").fill("")
                page.get_by_role("searchbox").press_sequentially(question)
                page.locator("#results[aria-busy=false] a").first.wait_for()
                page.wait_for_timeout(500)
            page.screenshot(path=ROOT / "docs/serve.png")
            with tempfile.TemporaryDirectory() as folder:
                take_alignment(browser, Path(folder) / "story.html")
            if REPORT.is_file():
                page = browser.new_page(viewport=TALL)
                page.goto(REPORT.as_uri())
                page.screenshot(path=ROOT / "docs/report.png")
        finally:
            server.terminate()


def take_alignment(browser: Browser, out: Path) -> None:
    command = [sys.executable, "-m", "ems", "align", "--format", "html", "--out", str(out)]
    for side, code in (("source", "de"), ("target", "en")):
        command += [f"--{side}", f"examples/story.{code}.txt", f"--{side}-language", code]
    subprocess.run(command, cwd=ROOT, check=True)
    page = browser.new_page(viewport=SIZE, device_scale_factor=1.5)
    page.goto(out.as_uri())
    page.screenshot(path=ROOT / "docs/align.png")


if __name__ == "__main__":
    main()
