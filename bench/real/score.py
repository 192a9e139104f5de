"""One answer against one truth: is the first finding right, is the largest place shown, are shares and phases true?"""

import re
import statistics
from dataclasses import dataclass

PHASES = ("Data", "H2D", "Fwd", "Bwd", "Opt", "Eval", "Ckpt", "Log", "Other")
_PLACE = re.compile(r"([\w/.-]+\.py)(?::(\d+)(?:-(\d+))?)?")
OTHER_WORD = {"host_code": "callback"}  # the program's own Python beside the network: a callback where a library calls it
HEALTHY_GAIN = 1.2
CALLERS = 2  # that the terminal shows of a site
NAMED_FOR_NOTHING = 0.02


@dataclass(frozen=True)
class Score:
    """Shares and phases in percent; None where there is nothing to compare."""

    name: str
    first: str
    first_share: float | None
    right: bool
    healthy: bool
    gain: float
    shown: bool | None  # the truly largest site is among the first three
    share: float | None
    true_share: float
    phases_off: float | None
    error: str = ""

    @staticmethod
    def first_of(row: dict) -> str:
        """Kind and line of the first finding."""
        found = (row.get("findings") or [{}])[0]
        at = found.get("location") or {}
        return f"{found.get('kind', 'none')} {at.get('file', '')}:{at.get('line', '')}"

    @property
    def accused(self) -> bool:
        """A healthy program that is named a bottleneck."""
        return self.healthy and self.first not in ("compute", "none") and not self.error

    @property
    def called_healthy(self) -> bool:
        """Called healthy where an expert gets more."""
        return self.first == "compute" and not self.healthy and self.gain > HEALTHY_GAIN

    def line(self) -> str:
        if self.error:
            return f"{self.name}: {self.error[:160]}"
        site = "" if self.share is None else f", share {self.share:.0f} of {self.true_share:.0f}"
        off = "" if self.phases_off is None else f", phases off by {self.phases_off:.1f}"
        return (
            f"{self.name}: {self.first} {'right' if self.right else 'WRONG'}, largest {'shown' if self.shown else 'NOT SHOWN'}{site}{off}"
        )

    def cells(self) -> str:
        shares = "" if self.share is None else f"{self.share:.0f}, {self.true_share:.0f}"
        off = "" if self.phases_off is None else f"{self.phases_off:.1f}"
        return f"| {self.name} | {self.first} | {'yes' if self.right else 'no'} | {'yes' if self.shown else 'no'} | {shares} | {off} |"


def _expert(truth: dict) -> dict:
    """What an expert gained; where nothing was found to change, the truth has a sentence there."""
    return truth["expert"] if isinstance(truth.get("expert"), dict) else {}


def score(truth: dict, row: dict) -> Score:
    """One program's score."""
    largest, gain = truth["sites"][0], float(_expert(truth).get("gain") or 1.0)
    plain = {"name": truth["name"], "healthy": bool(truth["healthy"]), "gain": gain, "true_share": float(largest["share"])}
    if "findings" not in row:
        return Score(
            first="none",
            first_share=None,
            right=False,
            shown=None,
            share=None,
            phases_off=None,
            error=row.get("error", "no result"),
            **plain,
        )
    first = (row["findings"] or [{"kind": "none", "share": None}])[0]
    wanted = {*truth["first_cause"], *(["compute"] if truth["healthy"] else [])}
    wanted |= {OTHER_WORD[kind] for kind in wanted if kind in OTHER_WORD}
    by_library = _by_library(truth, largest)
    shown = any(_is(site, largest, by_library) for site in row["sites"][:3])
    measured = {name: 100 * (row["phases"].get(name) or {"share": 0.0})["share"] for name in PHASES}
    return Score(
        first=first["kind"],
        first_share=first["share"],
        right=first["kind"] in wanted,
        shown=shown,
        share=_share(row, largest, by_library),
        phases_off=max(abs(measured[name] - float(truth["phases"].get(name, 0.0))) for name in PHASES),
        **plain,
    )


def _by_library(truth: dict, site: dict) -> bool:
    """Whether the owner's line stands for more than this place, so that the library's lines have to tell."""
    others = [each for each in truth["sites"] if each is not site]
    return any(each["at"] == site["at"] for each in others)


def _places(site: dict, by_library: bool) -> list[tuple[str, int | None, int | None]]:
    """(end of a file's name, first line, last line) that the truth names."""
    text = str(site.get("library") or "") if by_library else site["at"]
    found = []
    for file, first, last in _PLACE.findall(text):
        low = int(first) if first else None
        found.append((file, low, int(last) if last else low))
    if not by_library and found and site.get("lines"):
        found = [(found[0][0], int(site["lines"][0]), int(site["lines"][-1]))]
    return found


def _lies(at: dict, places: list[tuple[str, int | None, int | None]]) -> bool:
    return any(
        (at["file"].endswith(file) or file.endswith(f"/{at['file']}"))
        and (first is None or first <= at["line"] <= (last if last is not None else first))
        for file, first, last in places
    )


def _is(site: dict, truth: dict, by_library: bool) -> bool:
    above = [*site.get("callers", [])[:CALLERS], *([site["under"]] if site["under"] else [])]
    around = [site["location"], *(site["path"] if by_library else above)]
    names = set(re.findall(r"[A-Za-z_]\w*\.[a-z_]\w*|\b[a-z_]\w*(?=\b)", str(truth.get("library") or ""))) if by_library else set()
    places = _places(truth, by_library)
    return any(_lies(at, places) or at["function"] in names for at in around)


def _share(row: dict, truth: dict, by_library: bool) -> float:
    """Percent of the steady time at the truth's place: of the sites there, or of all that runs below it, whichever is nearer to the truth.

    A truth that names a function's lines may mean what they call in other lines of the owner's, or not.
    """
    places = _places(truth, by_library)
    sites = 100 * sum(site["share"] for site in row["all_sites"] if site["role"] == "main" and _is(site, truth, by_library))
    below = 100 * sum(_below(root, places) for root in row["tree"])
    return min((sites, below), key=lambda share: abs(share - float(truth["share"])))


def _below(node: dict, places: list[tuple[str, int | None, int | None]]) -> float:
    if node["kind"] != "phase" and _lies(node["location"], places):
        return node["share"]
    return sum(_below(child, places) for child in node["children"])


def totals(rows: list[Score]) -> list[str]:
    """The figures of the whole."""
    done = [row for row in rows if not row.error]
    if not done:
        return ["nothing was run"]
    off = sorted(abs(row.share - row.true_share) for row in done if row.share is not None)
    phases = sorted(row.phases_off for row in done if row.phases_off is not None)
    small = [row.name for row in done if row.first != "compute" and row.first_share is not None and row.first_share < NAMED_FOR_NOTHING]
    accused, missed = [row.name for row in done if row.accused], [row.name for row in done if row.called_healthy]
    nine = [values[int(0.9 * (len(values) - 1))] for values in (off, phases)]
    return [
        f"first finding right: {sum(row.right for row in done)} of {len(done)}",
        f"largest site among the first three: {sum(bool(row.shown) for row in done)} of {len(done)}",
        f"its share, points off: {statistics.median(off):.1f} in the median, {nine[0]:.1f} at p90",
        f"largest error of a phase, points: {statistics.median(phases):.1f} in the median, {nine[1]:.1f} at p90",
        f"healthy programs accused: {', '.join(accused) or 'none'}",
        f"called healthy where an expert gets more than {HEALTHY_GAIN}: {', '.join(missed) or 'none'}",
        f"headlines about less than 2 % of the time: {', '.join(small) or 'none'}",
        *([f"not run: {', '.join(row.name for row in rows if row.error)}"] if len(done) < len(rows) else []),
    ]
