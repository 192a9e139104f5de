"""The page in a real browser, dark and light: it fits a phone, asks nothing of the network, and axe-core finds nothing."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import report_scenarios as scenarios
import report_sites as shown

from trainflash import report

_BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.full, pytest.mark.skipif(_BROWSER is None, reason="no headless browser is installed")]
AXE = "axe-core@4.14.1"
_TUNED = replace(
    scenarios.TUNED, before=replace(scenarios.BEFORE, sites=shown.SITES), after=replace(scenarios.AFTER, sites=shown.SITES[1:])
)
PAGE = report.html(_TUNED, scenarios.LOG, scenarios.PLAN, scenarios.STEPS, report.Calls(shown.TREE, shown.deep(20, 2)))
PAGES = {"tuned": PAGE, "nothing": report.html(scenarios.NOTHING, (), None)}

# The page lies in a frame as wide as a phone's screen: headless windows are never that narrow.
_FRAME = """<!doctype html><meta charset="utf-8"><body>
<iframe id="phone" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>
<pre id="seen"></pre><script>
const frame = document.getElementById("phone");
frame.onload = async () => {{
  const inside = frame.contentDocument, root = inside.documentElement, view = frame.contentWindow;
  const shown = (name) => {{
    const chart = inside.querySelector(".chart ." + name);
    return chart ? view.getComputedStyle(chart).display !== "none" : null;
  }};
  const clipped = [...inside.querySelectorAll("svg text")].filter((text) => {{
    const box = text.getBoundingClientRect(), chart = text.ownerSVGElement.getBoundingClientRect();
    return box.width && (box.left < chart.left - 2 || box.right > chart.right + 2);
  }}).map((text) => text.textContent.trim());
  const seen = {{
    wanted: root.scrollWidth, has: root.clientWidth, narrow: shown("narrow"), clipped,
    background: view.getComputedStyle(inside.body).backgroundColor,
    requests: view.performance.getEntriesByType("resource").length,
  }};
  const field = inside.querySelector(".icicle input"), icicle = inside.querySelector(".icicle");
  seen.searches = [];
  for (const wanted of field ? ["METRIC.py", "_call_impl", "no such file", ""] : []) {{
    field.value = wanted;
    field.dispatchEvent(new view.Event("input"));
    seen.searches.push([icicle.querySelector("output").textContent, icicle.querySelectorAll(".wide .hit").length]);
  }}
  seen.offered = field ? field.checkVisibility() : null;
  if (view.axe) {{
    const found = await view.axe.run(inside);
    seen.passes = found.passes.length;
    seen.violations = found.violations.map((rule) => rule.id + ": " + rule.nodes.map((node) => node.html.slice(0, 120)).join(" | "));
    seen.contrast = found.passes.filter((rule) => rule.id === "color-contrast").length;
  }}
  document.getElementById("seen").textContent = JSON.stringify(seen);
}};
</script>"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core as npm has it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core comes by npm, which is not installed")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    if packed.returncode:
        pytest.skip(f"npm could not fetch {AXE}: {packed.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        source = archive.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()


def _seen(folder: Path, page: str, width: int, scheme: str = "light", axe: str = "") -> dict[str, object]:
    if axe:  # the page allows itself no script, so the check of it is let in
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        page = page.replace("</head>", f"<script>{axe}</script></head>")
    path = folder / "frame.html"
    path.write_text(_FRAME.format(width=width, page=html.escape(page)), encoding="utf-8")
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", f"--user-data-dir={folder}/profile"]
    colours = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    budget = f"--virtual-time-budget={60_000 if axe else 3000}"
    command = [str(_BROWSER), *quiet, colours, "--enable-logging=stderr", "--window-size=1400,1000", budget, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.S)
    assert found, done.stdout[-500:]
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return {**json.loads(html.unescape(found.group(1))), "console": said}


@pytest.mark.parametrize("width", [360, 390, 1200])
def test_the_page_fits_its_width(tmp_path: Path, width: int) -> None:
    seen = _seen(tmp_path, PAGE, width)
    assert seen["wanted"] == seen["has"]
    assert seen["narrow"] is (width < 640)
    assert seen["clipped"] == []
    assert seen["requests"] == 0
    assert seen["console"] == []


def test_a_page_that_is_too_wide_and_says_errors_is_caught(tmp_path: Path) -> None:
    page = PAGE.replace("</main>", '<p style="width:500px">wide</p><script>1</script></main>')
    seen = _seen(tmp_path, page, 390)
    assert seen["wanted"] != seen["has"]
    assert any("Content Security Policy" in line for line in seen["console"])


def test_the_call_tree_is_searched_and_each_second_counts_once(tmp_path: Path) -> None:
    seen = _seen(tmp_path, PAGE, 1200)
    assert seen["offered"] is True
    assert seen["searches"] == [["67.0 % of the time in 3 boxes", 3], ["79.0 % of the time in 2 boxes", 2], ["nothing", 0], ["", 0]]


def test_without_a_script_the_picture_stands_alone(tmp_path: Path) -> None:
    seen = _seen(tmp_path, re.sub(r"sha256-[^']*", "sha256-none", PAGE), 1200)
    assert seen["offered"] is False
    assert seen["clipped"] == []


def test_dark_and_light_differ(tmp_path: Path) -> None:
    assert _seen(tmp_path, PAGE, 800, "dark")["background"] != _seen(tmp_path, PAGE, 800, "light")["background"]


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(tmp_path: Path, axe: str, name: str, scheme: str) -> None:
    seen = _seen(tmp_path, PAGES[name], 390, scheme, axe)
    assert seen["violations"] == []
    assert seen["passes"] > 10 and seen["contrast"] == 1


def test_axe_can_find_one(tmp_path: Path, axe: str) -> None:
    seen = _seen(tmp_path, PAGE.replace("--quiet: #5f5d57", "--quiet: #c5c3bd").replace(' lang="en"', ""), 390, "light", axe)
    assert any(rule.startswith("color-contrast") for rule in seen["violations"])
    assert any(rule.startswith("html-has-lang") for rule in seen["violations"])
