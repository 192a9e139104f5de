"""What `redact` finds of made-up secrets, and what of ordinary text it takes for one, beside two well-kept detectors.

detect-secrets is used where it is installed (`pip install detect-secrets`); the rules of gitleaks where its `config/gitleaks.toml` is
named. Ordinary text: what training programs print, and every line of this repository's own source and documents.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from trainflash import redact

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "unit"))

from secret_kinds import SECRETS, line_of  # noqa: E402

Found = Callable[[list[str]], set[int]]  # numbers of the lines in which a detector sees a secret


def ours(lines: list[str]) -> set[int]:
    return {number for number, line in enumerate(lines) if redact.text(line) != line}


def detect_secrets() -> Found | None:
    try:
        from detect_secrets.core import scan
        from detect_secrets.settings import default_settings
    except ImportError:
        return None

    def found(lines: list[str]) -> set[int]:
        with tempfile.TemporaryDirectory() as folder, default_settings():
            path = Path(folder, "output.log")
            path.write_text("\n".join(lines), encoding="utf-8")
            return {one.line_number - 1 for one in scan.scan_file(str(path))}

    return found


def gitleaks(rules: Path) -> Found:
    """Its patterns with their keywords and entropies; not its lists of what is allowed in certain files."""
    if sys.version_info < (3, 11):
        raise SystemExit("the rules are TOML: Python 3.11 or newer reads them")
    import tomllib

    table = []
    for rule in tomllib.loads(rules.read_text())["rules"]:
        if "regex" not in rule:
            continue
        pattern = rule["regex"].replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
        pattern = re.sub(r"(?<=.)\(\?i\)", "", pattern) if "(?i)" in pattern[1:] else pattern
        flags = re.IGNORECASE if "(?i)" in rule["regex"] else 0
        stops = [word.lower() for allowed in rule.get("allowlists", ()) for word in allowed.get("stopwords", ())]
        table.append((re.compile(pattern, flags), rule.get("secretGroup", 0), rule.get("keywords", ()), rule.get("entropy", 0.0), stops))

    def has(line: str) -> bool:
        lower = line.lower()
        for pattern, group, keywords, entropy, stops in table:
            if keywords and not any(word.lower() in lower for word in keywords):
                continue
            for match in pattern.finditer(line):
                secret = match[group] if group else next((part for part in match.groups() if part), match[0])
                if entropy_of(secret) > entropy and not any(word in secret.lower() for word in stops):
                    return True
        return False

    return lambda lines: {number for number, line in enumerate(lines) if has(line)}


def entropy_of(word: str) -> float:
    """Bits a character."""
    return -sum(n / len(word) * math.log2(n / len(word)) for n in Counter(word).values()) if word else 0.0


def ordinary() -> Iterable[str]:
    """Lines without a secret."""
    chance = random.Random(1)
    for step in range(3000):
        digest = f"{chance.getrandbits(160):040x}"
        yield from (
            f"epoch {step // 100} step {step} loss={chance.random():.6f} lr={chance.random():.2e} grad_norm: {chance.random():.3f}",
            f" {step % 100}%|████      | {step}/3000 [00:{step % 60:02d}<01:02, 12.3it/s, v_num={step}, train_loss={chance.random():.3f}]",
            f"saved /checkpoints/run-{digest[:8]}/step_{step}/model-0000{step % 9}-of-00009.safetensors sha256 {digest}{digest[:24]}",
            f'{{"tokens": {step * 4096}, "token_accuracy": {chance.random():.4f}, "max_token": 4096, "key_padding": "left"}}',
            f"commit {digest} Merge branch 'main'; run id {digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}",
            f"wandb: Run data is saved locally in /w/wandb/offline-run-2025{step:04d}-{digest[:8]}; tokens/sec={step * 7.1:.1f}",
            f"Some weights of the model were not used: ['encoder.layer.{step % 12}.attention.self.key.weight'] tokenizer.pad_token_id=0",
        )
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in (".py", ".md", ".yaml", ".toml") and not {"tests", ".venv", "build"} & set(path.relative_to(ROOT).parts):
            yield from path.read_text(encoding="utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gitleaks", type=Path, help="config/gitleaks.toml of that project")
    given = parser.parse_args()
    detectors = {"ours": ours, "detect-secrets": detect_secrets(), "gitleaks": gitleaks(given.gitleaks) if given.gitleaks else None}
    with_one, without = {kind: line_of(kind)[0] for kind in SECRETS}, list(ordinary())
    result: dict[str, object] = {"kinds": len(with_one), "ordinary_lines": len(without)}
    for name, found in detectors.items():
        if found is not None:
            seen, alarms = found(list(with_one.values())), sorted(found(without))
            missed = [kind for number, kind in enumerate(with_one) if number not in seen]
            some = [without[number][:120] for number in alarms[:: max(1, len(alarms) // 8)]]
            result[name] = {"found": len(with_one) - len(missed), "missed": missed, "false_alarms": len(alarms), "some_alarms": some}
    print(json.dumps(result, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
