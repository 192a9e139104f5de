"""Reports say what the artefacts hold, nothing more, and nothing in them can act as markup."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
import report_scenarios as scenarios
from rich.console import Console, RenderableType

from trainflash import report
from trainflash.errors import ProgramFailed, UsageError
from trainflash.report import figures
from trainflash.schema import (
    Candidate,
    Cost,
    Evidence,
    Location,
    Plan,
    Refusal,
    Resources,
    RunPart,
    Sandbox,
    Speedup,
    WholeRun,
    Worth,
)  # fmt: skip
from trainflash.schema.authors import Earned

HOSTILE = '$x^ <script>alert(1)</script> [bold]x[/bold] [redacted] | `y` \x1b[31mred\u202e "quoted" & more'


def _print(renderable: RenderableType, width: int = 110, *, colour: bool = False) -> str:
    out = StringIO()
    Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None, legacy_windows=False).print(
        renderable
    )
    return out.getvalue()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (figures.percent(None), "not measured"),
        (figures.percent(0.0), "0.0 %"),
        (figures.percent(0.0004), "< 0.1 %"),
        (figures.percent(0.6149), "61.5 %"),
        (figures.ms(None), "not measured"),
        (figures.ms(0.0), "0 ms"),
        (figures.ms(1240.4), "1,240 ms"),
        (figures.ms(0.0421), "0.042 ms"),
        (figures.number(0.00001), "1.0e-05"),
        (figures.times(1.0189), "1.019×"),
        (figures.times(1.834), "1.83×"),
        (figures.times(12.44), "12.4×"),
        (figures.times(None), "not measured"),
        (figures.interval(Speedup(1.12, 1.0194, 1.2, 4)), "1.120× [1.019, 1.200]"),
        (figures.interval(None), "not measured"),
        (figures.tails(Speedup(1.1, 1.0, 1.2, 4, tail_reason="too few steps")), "not measured: too few steps"),
        (figures.seconds(59.94), "59.9 s"),
        (figures.seconds(59.96), "1 min"),
        (figures.seconds(200), "3 min 20 s"),
        (figures.seconds(7500), "2 h 5 min"),
        (figures.seconds(3599.7), "1 h"),
        (figures.delta(0.0), "0"),
        (figures.delta(3e-9), "3e-09"),
        (figures.loss(None), "not measured"),
        (figures.evidence(Evidence("x", 0.97, "share")), "97.0 %"),
        (figures.evidence(Evidence("x", 15360)), "15,360"),
        (figures.evidence(Evidence("x", "fork", "start method")), "fork start method"),
        (figures.count(1, "start"), "1 start"),
        (figures.place(None), "no single line"),
        (figures.short("one two three", 8), "one two…"),
        (figures.visible("a\x1b[31m\u202eb\n"), "a\\x1b[31m\\u202eb\n"),
    ],
)
def test_figures(shown: str, expected: str) -> None:
    assert shown == expected


@pytest.mark.parametrize("width", [40, 80, 140])
def test_every_terminal_report_fits_its_terminal(width: int) -> None:
    tuned = scenarios.TUNED
    reports = [
        report.diagnosis(scenarios.BEFORE),
        report.plan(scenarios.PLAN),
        report.fidelity(scenarios.CHANGED),
        report.verdict(tuned.combined),
        report.experiments(tuned.experiments),
        report.log(scenarios.LOG),
        report.diff(tuned.diff),
        report.tune_result(tuned),
    ]
    for renderable in reports:
        assert all(len(line.rstrip()) <= width for line in _print(renderable, width).splitlines())


def test_no_colour_where_there_is_no_terminal() -> None:
    assert "\x1b" not in _print(report.tune_result(scenarios.TUNED))
    assert "\x1b" in _print(report.tune_result(scenarios.TUNED), colour=True)


def test_the_end_of_a_tuning_says_result_files_and_the_one_command() -> None:
    text = _print(report.tune_result(scenarios.TUNED))
    for expected in (
        "2.49× faster, and it trains the same",
        "[2.35, 2.64]",
        "Loss delta  0 over 200 updates",
        "174",
        "68.8",
        "+++ b/train.py",
    ):
        assert expected in text
    assert str(scenarios.TUNED.report_path) in text
    assert str(scenarios.TUNED.log_path) in text
    assert text.rstrip().endswith("trainflash writeback --accepted")


def test_a_tuning_without_result_offers_nothing_to_approve() -> None:
    text = _print(report.tune_result(scenarios.NOTHING))
    assert "Nothing to write back" in text
    assert "no knob fits what was found" in text
    assert "writeback" not in text


def test_a_candidate_that_is_not_accepted_is_not_called_faster() -> None:
    for word in ("reject", "inconclusive"):
        view = replace(scenarios.TUNED, combined=scenarios.verdict(word, 1.5, 1.4, 1.6), approve_command=None)
        for text in (_print(report.tune_result(view)), report.markdown(view), report.html(view, (), None)):
            assert "faster, and" not in text
        assert report.headline(view).tone != "good"


def test_what_needs_an_agreement_says_which_and_how_to_give_it() -> None:
    judged = replace(scenarios.verdict("needs_agreement", 1.42, 1.35, 1.5, scenarios.CHANGED), needs=("order",))
    one = scenarios.experiment(3, "length_bucketing", "8", "needs_agreement", judged)
    view = replace(scenarios.TUNED, combined=judged, experiments=(one,), approve_command=None)
    assert report.headline(view).text == "Needs agreement: order" and report.headline(view).tone == "unsure"
    alone = _print(report.verdict(judged))
    assert "NEEDS AGREEMENT: order" in alone and "the same command with --accept-change order" in alone
    assert "trains the same but for what needs agreement: other order" in alone and "1.42" in alone
    command = "trainflash verify --experiment 3 --accept-change order"
    assert command in _print(report.verdict(judged, one.agree_command))
    page = report.html(view, (), None)
    assert command in page and "needs agreement" in page and "needs_agreement" not in page
    assert "needs_agreement" not in report.markdown(view) and "needs agreement" in report.markdown(view)
    assert replace(one, verdict=replace(judged, verdict="inconclusive")).agree_command == "", "an open verdict waits for more than that"


def test_the_bottleneck_comes_first_and_other_is_never_hidden() -> None:
    for width in (40, 140):
        text = _print(report.diagnosis(scenarios.BEFORE), width)
        assert text.startswith("Bottleneck: input_cpu")
        assert "Other" in text
    assert "–: not measured" in text


def test_an_abstaining_diagnosis_names_no_bottleneck() -> None:
    text = _print(report.diagnosis(replace(scenarios.BEFORE, abstained="36 % of the time is unexplained")))
    assert text.startswith("No diagnosis: 36 % of the time is unexplained")
    assert "Bottleneck" not in text


def test_an_abstaining_diagnosis_says_what_would_help() -> None:
    advice = 'mark the phases by hand:\nwith phase("Data"): ...'
    unsure = replace(scenarios.BEFORE, findings=(), abstained="36 % of the time is unexplained", advice=(advice,))
    view = replace(scenarios.TUNED, before=unsure)
    shown = (_print(report.diagnosis(unsure)), report.markdown(view), report.html(view, [], None))
    assert all("36 % of the time is unexplained" in text and "mark the phases by hand" in text for text in shown)
    assert 'with phase("Data"): ...' in shown[0]


def test_what_was_not_measured_is_said() -> None:
    judged = replace(scenarios.verdict("inconclusive", 1.0, 0.9, 1.1), speedup=None, fidelity=None)
    text = _print(report.verdict(judged))
    assert text.count("not measured") == 7
    assert "? not measured" not in _print(report.fidelity(scenarios.SAME))
    assert "not measured: none was written within 200 updates" in _print(report.fidelity(scenarios.SAME))


def test_an_error_shows_the_program_s_own_output_and_the_mend() -> None:
    text = _print(
        report.error(ProgramFailed("the program failed", "mend train.py", returncode=3, output="Traceback [redacted]\nValueError: x"))
    )
    assert text.index("ValueError: x") < text.index("error: the program failed (exit code 3)") < text.index("mend train.py")
    assert _print(report.error(UsageError("no such knob [x]", "look at the list"))) == "error: no such knob [x]\nmend:  look at the list\n"


def test_a_sandbox_shows_where_it_lies_and_its_warnings() -> None:
    box = Sandbox("/p", "/p", "/s", "/s/baseline", "/s/worktree", "a" * 40, None, "2026-11-21T12:02:58Z", "mount", warnings=("no git",))
    text = _print(report.sandbox(box, ["the original has changed since"]))
    for expected in ("/s/worktree", "mount", "• the original has changed since", "! no git"):
        assert expected in text


def test_text_of_others_is_text_everywhere() -> None:
    finding = replace(scenarios.BOTTLENECK, summary=HOSTILE)
    tried = replace(scenarios.EXPERIMENTS[0], knob=HOSTILE, why=HOSTILE)
    view = replace(
        scenarios.TUNED, before=replace(scenarios.BEFORE, findings=(finding,)), experiments=(tried,), diff=f"+{HOSTILE}\n", project=HOSTILE
    )
    for text in (_print(report.tune_result(view), 400), _print(report.diagnosis(view.before), 400)):
        assert "[redacted]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    page = report.html(view, scenarios.LOG, scenarios.PLAN)
    assert "<script" not in page
    assert "\u202e" not in page
    summary = report.markdown(view)
    assert "<script" not in summary.replace("\\<script", "")
    assert "\u202e" not in summary


class _Page(HTMLParser):
    """What the tests ask of the page: balanced tags, headings in order, ids once, nothing loaded."""

    void = frozenset({"meta", "br", "link", "img", "input", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.used: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.void:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if named.get("id"):
            self.ids.append(str(named["id"]))
        self.used += re.findall(r"url\(#([^)]+)\)", str(attrs)) + [
            str(v)[1:] for k, v in attrs if k.endswith("href") and str(v).startswith("#")
        ]
        self.used += str(named.get("aria-labelledby") or "").split()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _read(page: str) -> _Page:
    parser = _Page()
    parser.feed(page)
    parser.close()
    return parser


@pytest.fixture(scope="module")
def tuned() -> str:
    """The page of the tuning, with all that it can hold; drawing it takes a second, so tests share it."""
    return report.html(scenarios.TUNED, scenarios.LOG, scenarios.PLAN, scenarios.STEPS)


@pytest.mark.parametrize("view", [scenarios.TUNED, scenarios.NOTHING])
def test_the_page_is_whole_offline_and_accessible(view: report.TuneView, tuned: str) -> None:
    text = tuned if view is scenarios.TUNED else report.html(view, (), None, report.Steps(scenarios.STEPS.before))
    page = _read(text)
    assert page.open == []
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert len(page.ids) == len(set(page.ids))
    assert set(page.used) <= set(page.ids)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.tags}
    assert not [
        value for _, attrs in page.tags for name, value in attrs.items() if name in {"src", "href"} and not str(value).startswith("#")
    ]
    assert ("html", {"lang": "en"}) in page.tags
    assert all(attrs.get("aria-label") and attrs.get("role") == "img" for tag, attrs in page.tags if tag == "svg")
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")
    assert "None" not in re.sub(r"<[^>]*>", "", text)


def test_the_page_tells_all(tuned: str) -> None:
    for expected in (
        "2.49× faster", "2.49× [2.35, 2.64]", "trainflash writeback --accepted", "data.py:31 in Flowers.__getitem__",
        "1.018× [0.991, 1.046]", "trains differently: order", "Not seen, so not compared: checkpoint, schedule",
        "functools.lru_cache", "the model is on the CPU",
        "A callback sorts all past losses", "python train.py --config configs/flowers.yaml",
    ):  # fmt: skip
        assert expected in tuned


def test_the_same_view_gives_the_same_page(tuned: str) -> None:
    assert report.html(scenarios.TUNED, scenarios.LOG, scenarios.PLAN, scenarios.STEPS) == tuned


def test_the_page_shows_every_step_and_the_tails(tuned: str) -> None:
    spoken = "; ".join(re.findall(r'aria-label="([^"]+)"', tuned))
    assert "Steps before, in order, 240 steps, warm-up 5" in spoken and "Steps after" in spoken
    assert "p95: 243 ms before, 96.3 ms after" in spoken and "p99: " not in spoken
    assert "2,247 ms" in tuned, "the checkpoint stands out of the picture, and its height is said"


def test_without_steps_nothing_is_said_about_them() -> None:
    text = report.html(replace(scenarios.NOTHING, before=scenarios.BEFORE), (), None)
    assert "Step by step" not in text and "not measured" in text


def test_memory_and_the_whole_run_stand_on_the_page() -> None:
    judged = replace(
        scenarios.TUNED.combined,
        whole_run=WholeRun(1.9, 12_000, 500.0, 263.0, 4.0, 0.0, None),
        resources=Resources(11.0, 5.2, 310.0, 651.0),
    )
    text = report.html(replace(scenarios.NOTHING, combined=judged, experiments=scenarios.EXPERIMENTS[:1]), (), None)
    for expected in ("1.90× over 12,000 steps: 8 min 20 s → 4 min 23 s", "310 → 651 MB on the host", "11.0 → 5.20 ms a step"):
        assert expected in text


def test_charts_take_their_colours_from_the_page(tuned: str) -> None:
    charts = "".join(re.findall(r"<svg.*?</svg>", tuned, flags=re.DOTALL))
    assert "var(--phase-data)" in charts
    assert not re.search(r"#0000[1-4][0-9a-f]\b", charts)
    assert set(re.findall(r"var\((--[\w-]+)\)", tuned)) <= set(re.findall(r"(--[\w-]+):", tuned))


def test_the_pull_request_summary_is_markdown_with_whole_tables() -> None:
    text = report.markdown(replace(scenarios.TUNED, experiments=(replace(scenarios.EXPERIMENTS[0], value="a|b\nc"),)))
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) == 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1
    assert "## 2.49× faster, and it trains the same" in text
    assert "```sh\ntrainflash writeback --accepted\n```" in text


def test_reports_load_matplotlib_only_for_a_page() -> None:
    code = "import sys; import trainflash.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_whole_run_says_what_its_factor_rests_on():
    seen = "from steps 5 to 300 of 1,256; no trend seen"
    flat = WholeRun(1.5, 1256, 19.0, 12.7, 3.0, 0.0, None, ci_low=1.44, ci_high=1.56, basis="no_trend", seen=seen)
    assert figures.whole_run(flat) == f"1.50× [1.44, 1.56] over 1,256 steps: 19.0 s → 12.7 s; {seen}"
    parts = (RunPart(5, 300, 4.0, 2.0, 2.0), RunPart(300, 1256, 4.0, 8.0, 0.5))
    growing = replace(flat, speedup=0.8, basis="measured", by_step=parts)
    assert figures.whole_run(growing).endswith("s, measured; step 5 to 300 2.00×; step 300 to 1,256 0.50×")
    unseen = replace(growing, speedup=None, basis="not_claimed")
    assert figures.whole_run(unseen).startswith("nothing is claimed of its 1,256 steps; step 5 to 300")


def _worth(share: float, chance: float = 0.5) -> Worth:
    return Worth(share, chance, 90.0)


def test_a_plan_shows_each_cost_with_its_candidates_then_three_refusals_that_matter() -> None:
    here = Location("train.py", 34, "main")
    gc = Candidate(
        "gc_threshold", "50000", "garbage_collection", Location("train.py", 8), "same", "", "collect less often", worth=_worth(0.4)
    )
    workers = [Candidate("dataloader_workers", n, "input_cpu", here, "same", "", "more workers", worth=_worth(0.35)) for n in ("1", "2")]
    rare = Candidate("eval_cadence", "200", "evaluation", here, "cadence", "", "evaluate less often", worth=_worth(0.07, 0.25))
    plan = Plan(
        run="diagnose-001",
        created_utc="2026-11-21T12:04:00Z",
        candidates=(gc, *workers, rare),
        refused=(*(Refusal(f"knob_{n}", "input_cpu", f"reason {n}") for n in range(5)), Refusal("idle", "input_cpu", "no such call", True)),
        costs=(
            Cost("garbage_collection", here, 0.4, 0.4), Cost("input_cpu", here, 0.35, 0.35), Cost("evaluation", None, 0.07, 0.07),
            Cost("repeated_work", here, 0.06, 0.06), Cost("host_code", Location("train.py", 50, "main"), 0.05, 0.05),
        ),
        briefs=scenarios.PLAN.briefs,
    )  # fmt: skip
    text = " ".join(_print(report.plan(plan), 400).split())
    order = ["40.0 % of the time: garbage_collection", "1. gc_threshold = 50000", "input_cpu at", "2–3. dataloader_workers = 1, 2",
             "evaluation", "4. ",
             "needs --allow cadence", "repeated_work", "see 2, at the same place", "host_code", "no setting and no transform fits",
             "Not possible here", "reason 2", "3 more refusals"]  # fmt: skip
    assert sorted(order, key=text.index) == order
    assert "at most 1.67×; pays in 50% of such cases; a verdict takes about 1 min 30 s" in text
    assert "reason 3" not in text and "no such call" not in text, "the rest is in --json"
    assert text.count("dataloader_workers") == 1 and "optimize brief --finding host_code -- CMD" in text


def test_a_plan_of_no_diagnosis_says_so() -> None:
    plan = replace(scenarios.PLAN, candidates=(), refused=(), briefs=(), abstained="only 3 steps were seen", advice=("give it longer",))
    text = " ".join(_print(report.plan(plan), 200).split())
    assert "no plan: only 3 steps were seen" in text and "give it longer" in text and "knob" not in text
    healthy = _print(report.plan(replace(plan, abstained=None, advice=())), 200)
    assert "no cost that a change could save" in healthy


def test_the_ledger_is_the_same_in_every_medium():
    lines = (
        Earned("settings", 3, 1, 1.5, 12.0, paid_back_hours=0.6),
        Earned("author", 2, 1, 2.0, 6.0, 4.0, 3, 0.25, 1 / 3),
        Earned("by hand", 1, 0, None, 2.0),
    )
    shown = replace(scenarios.TUNED, ledger=lines)
    page, markdown, terminal = report.html(shown, [], None), report.markdown(shown), _print(report.tune_result(shown))
    for medium in (page, markdown, terminal):
        for word in ("What each source earned and cost", "2 of 3 attempts", "0.25", "36 min", "20 min", "1.50×", "2.00×", "10.0", "never"):
            assert word in medium, (word, medium)
    assert "not told" in report.markdown(replace(scenarios.TUNED, ledger=(replace(lines[1], cost_usd=None),)))
    narrow = _print(report.tune_result(shown), 80)
    assert all(f"\n {source} " in narrow for source in ("settings", "author", "by hand")), "a name is never broken"


def test_lines_of_a_diff_stay_whole_in_a_file():
    line = "-" + " one_word" * 20
    text = f"--- a/x.py\n+++ b/x.py\n@@ -1 +0,0 @@\n{line}\n"
    out = StringIO()
    Console(file=out, width=60).print(report.diff(text), crop=False)
    assert f"\n{line}\n" in out.getvalue()
    assert f"\n{line}\n" not in _print(report.diff(text), 60, colour=True), "a terminal breaks them"
