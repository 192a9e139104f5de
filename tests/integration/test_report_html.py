"""The page in a real browser: it fits a phone, draws what it should, and asks nothing of the network."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import report_scenarios as scenarios

from trainflash import report

_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.full, pytest.mark.skipif(_BROWSER is None, reason="no headless browser is installed")]

# The page lies in a frame as wide as a phone's screen: headless windows are never that narrow.
_FRAME = """<!doctype html><meta charset="utf-8"><body>
<iframe id="phone" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>
<pre id="seen"></pre><script>
const frame = document.getElementById("phone");
frame.onload = () => {{
  const inside = frame.contentDocument, root = inside.documentElement, view = frame.contentWindow;
  const shown = (name) => view.getComputedStyle(inside.querySelector(".chart ." + name)).display !== "none";
  const clipped = [...inside.querySelectorAll("svg text")].filter((text) => {{
    const box = text.getBoundingClientRect(), chart = text.ownerSVGElement.getBoundingClientRect();
    return box.width && (box.left < chart.left - 2 || box.right > chart.right + 2);
  }}).map((text) => text.textContent.trim());
  document.getElementById("seen").textContent = JSON.stringify({{
    wanted: root.scrollWidth, has: root.clientWidth, narrow: shown("narrow"), clipped,
    background: view.getComputedStyle(inside.body).backgroundColor,
    requests: view.performance.getEntriesByType("resource").length,
  }});
}};
</script>"""


def _seen(folder: Path, page: str, width: int, scheme: str = "light") -> dict[str, object]:
    path = folder / "frame.html"
    path.write_text(_FRAME.format(width=width, page=html.escape(page)), encoding="utf-8")
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", f"--user-data-dir={folder}/profile"]
    colours = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    command = [str(_BROWSER), *quiet, colours, "--window-size=1400,1000", "--virtual-time-budget=3000", "--dump-dom", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom)
    assert found, dom[-500:]
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_the_page_fits_its_width(tmp_path: Path, width: int) -> None:
    seen = _seen(tmp_path, report.html(scenarios.TUNED, scenarios.LOG, scenarios.PLAN), width)
    assert seen["wanted"] == seen["has"]
    assert seen["narrow"] is (width < 640)
    assert seen["clipped"] == []
    assert seen["requests"] == 0


def test_a_page_that_is_too_wide_is_caught(tmp_path: Path) -> None:
    page = report.html(scenarios.TUNED, scenarios.LOG, scenarios.PLAN).replace("</main>", '<p style="width:500px">wide</p></main>')
    seen = _seen(tmp_path, page, 390)
    assert seen["wanted"] != seen["has"]


def test_dark_and_light_differ(tmp_path: Path) -> None:
    page = report.html(scenarios.TUNED, (), None)
    assert _seen(tmp_path, page, 800, "dark")["background"] != _seen(tmp_path, page, 800, "light")["background"]
