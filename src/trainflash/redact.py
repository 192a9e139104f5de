"""Takes secrets out of text, command lines and environments before they are written or shown.

Two kinds of evidence: the *shape* of a value (a token with a known prefix, a private key block, credentials in a URL) and the *name* it is
assigned to (`--api-key X`, `HF_TOKEN=…`, `password: …`). Long hexadecimal words are no evidence by themselves: commits and digests stay
readable. Line breaks are never removed, so a redacted diff keeps its shape. `text` is idempotent.

Why patterns of our own: of 61 kinds of made-up secrets, detect-secrets 1.5.0 sees 16 with its default settings (neither Hugging Face,
W&B, Anthropic nor Google keys; it brings `requests`) and the 222 rules of gitleaks 39, most of the rest being passwords in flags, variables
and URLs and keys of model hosts; these here see all, which were written with both lists in view. Of 115,689 ordinary lines they change 9,
detect-secrets marks 2 and gitleaks 1: `bench/secrets_found.py`. Both are programs that would have to be started for every line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

REDACTED = "[redacted]"

# Values that are secrets by their shape; the whole match, or its group `secret`, is replaced. Sources: the issuers' own token formats.
# In the middle: words of which one stands, in small letters, in every text that has such a value; they are looked for first.
_SHAPES: tuple[tuple[str, str, str], ...] = (
    ("AWS access key id", "akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("GitHub", "gho_ ghp_ ghu_ ghs_ ghr_ github_pat", r"\bgh[pousr]_[A-Za-z0-9]{36,255}|\bgithub_pat_\w{22,255}"),
    ("GitLab", "gl", r"\bgl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[\w.-]{20,}"),
    ("Hugging Face", "hf_ api_org_", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("Weights & Biases", "wandb", r"\bwandb_v\d_\w{20,}|"
     r"\bwandb\W{1,3}login\W{1,3}(?:--relogin\s+)?(?:key\s*=\s*)?[\"']?(?P<secret>[0-9a-f]{40})\b"),
    ("OpenAI, Anthropic, OpenRouter", "sk-", r"\bsk-(?=[\w-]{0,200}\d)[A-Za-z0-9_-]{20,}"),
    ("Slack", "xox xapp- hooks.slack.com", r"\bx(?:ox[abceoprs]|app)-[A-Za-z0-9-]{10,}|"
     r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9_/+-]{20,})"),
    ("Google", "aiza ya29 gocspx", r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}"),
    ("Azure storage", "accountkey= sharedaccesskey=", r"(?i:\b(?:Account|SharedAccess)Key=)(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    ("Azure signature", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{20,})"),
    ("JSON web token", "eyj", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("credentials in a URL", "://", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'`]{0,200}:(?P<secret>[^\s/@\"'`]{1,300})@"),
    ("authorization header", "bearer basic", r"(?i:\b(?:Bearer|Basic)\s+)(?P<secret>(?=[\w.~+/=-]*\d)[\w.~+/-]{16,}={0,2})"),
    ("npm", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    ("PyPI", "pypi-", r"\bpypi-[\w-]{40,}"),
    ("Stripe", "k_live_ k_test_ whsec_", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9]{24,}"),
    ("SendGrid", "sg.", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    ("Databricks", "dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    ("Docker Hub, DigitalOcean", "dckr_ _v1_", r"\bdckr_(?:pat|oat)_[\w-]{20,}|\bdo[opr]_v1_[0-9a-f]{64}"),
    ("Groq, NVIDIA, Replicate, xAI", "gsk r8 xai nvapi", r"\b(?:gsk|r8|xai)[_-][A-Za-z0-9]{32,}|\bnvapi-[\w-]{40,}"),
    ("Telegram", ":aa", r"\b\d{8,10}:AA[\w-]{32,34}\b"),
    ("Neptune", "eyjhcglf", r"\beyJhcGlf[\w+/=-]{40,}"),
    ("Kaggle", '"key"', r'"key"\s*:\s*"(?P<secret>[0-9a-f]{32})"'),
    ("Perplexity, HashiCorp Vault", "pplx- hvs. hvb.", r"\bpplx-[A-Za-z0-9]{40,}|\bhv[sb]\.[\w-]{24,}"),
    ("Grafana, Sentry", "gls glc_ sntry", r"\bgl(?:sa|c)_[\w+/=]{32,}|\bsntry[su]_[\w+/=-]{40,}"),
    ("Doppler, Pulumi, Prefect", "dp. pul- pnu_ pnb_",
     r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}|\bpul-[0-9a-f]{40}\b|\bpn[ub]_[A-Za-z0-9]{36}"),
    ("Linear, Notion, Postman", "lin_ ntn_ secret_ pmak-",
     r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}|\b(?:ntn|secret)_[A-Za-z0-9]{43,}|\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("Atlassian, Shopify, Airtable", "atatt3 shp pat",
     r"\bATATT3[\w=-]{100,}|\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("Alibaba, Microsoft Entra, age", "ltai q~ age-secret-key-",
     r"\bLTAI[A-Za-z0-9]{16,20}\b|(?<![\w~.])[\w~.]{3}\dQ~[\w~.-]{31,34}|\bAGE-SECRET-KEY-1[A-Z0-9]{58}"),
)  # fmt: skip
_SHAPE_PATTERNS = tuple((hints.split(), re.compile(pattern)) for _, hints, pattern in _SHAPES)
_NAME_HINTS = ("pass", "secret", "key", "token")

_BEGIN, _BEGINS = "-----BEGIN PRIVATE KEY-----", "PRIVATE KEY"
_BLOCK_LINES = 2_000  # of a key whose end never comes; a key of 16,384 bits takes 200
HELD_BYTES = 256 * 1024
_AROUND = 8 * 1024  # more than any pattern spans
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)(.*?)(-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL)
_BLOCK_LINE = re.compile(r"(?m)^([+ -][ \t]*|[ \t]*(?![+ -]))\S.*$")

# Names whose last words say "secret".
_STRONG_NAME = re.compile(
    r"(?:pass(?:word|wd|phrase)|secret(?:[_-]?(?:access)?[_-]?key)?|api[_-]?key|access[_-]?key(?:[_-]?id)?|"
    r"(?:private|account|encryption|license|subscription)[_-]?key|"
    r"(?:hf|hub|auth|access|api|bearer|refresh|session|bot|deploy|github|gitlab|slack|personal)[_-]?token)$",
    re.IGNORECASE,
)
_ENVIRONMENT_TOKEN = re.compile(r"^[A-Z][A-Z0-9_]*_TOKEN$")
# Names that say it only beside a value that looks so: language models are full of tokens, caches full of keys.
_WEAK_NAME = re.compile(r"(?:^|[._-])token$|^[A-Z][A-Z0-9_]*_KEY$", re.IGNORECASE)
_VOCABULARY_NAME = re.compile(
    r"(?:pad(?:ding)?|eos|bos|sos|mask|sep|cls|unk|image|audio|video|special|start|end|stop|next|prev|last|first|per|num|max|min|new|boi|eoi|think)"
    r"[_-]?token$",
    re.IGNORECASE,
)

_NAME = r"(?P<name>[A-Za-z_][\w.-]{0,100})"
_VALUE = (
    r"(?:[rbfuRBFU]{0,2}(?P<quote>[\"'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n]){0,2000})(?P=quote)"
    r"|(?P<bare>(?:[^\s\"',;&|()\[\]{}<>=]|,(?=\S))[^\s\"';&|()\[\]{}<>]{0,2000}(?<!,)))(?P<call>[(\[]?)"
)
_ASSIGNMENT = re.compile(
    rf"(?<![\w.]){_NAME}(?:[\"']?\]?\s{{0,3}}(?::\s{{0,3}}(?:str|Optional\[str\]|str\s?\|\s?None)\s{{0,3}}(?==))?(?:==?|:|=>)[ \t]{{0,8}}"
    rf"|[\"'],[ \t]{{0,3}}(?=[\"'][^-])){_VALUE}"
)
_FLAG = re.compile(rf"(?<![\w-])--?{_NAME}[ \t]+(?!-){_VALUE}")

_NO_VALUE = frozenset({"", "none", "null", "nil", "true", "false", "str", "string", "optional", "bytes", "undefined", "required", "..."})
_EXPRESSION = re.compile(
    r"^(?:args|self|cls|cfg|conf|config|os|opts?|options|hparams|env|environ|params|kwargs|FLAGS|settings|secrets|getpass)\.\w"
)
_REFERENCE = re.compile(r"^(?:\$\w+|\$\{[^}]*\}|\$\(.*\)|%\(\w+\)s|\{.*\}|<[^>]*>|\[[^\]]*\]|\*+|[xX]{3,})$")
_OPAQUE = re.compile(r"^(?=.*\d)(?=.*[A-Za-z])[^\s(){}<>]{16,}$")


def text(s: str) -> str:
    """`s` with every secret replaced by `[redacted]`; everything else, line breaks included, as it was."""
    lower = s.lower()
    if "private key" in lower:
        s = _KEY_BLOCK.sub(_hide_block, s)
    for hints, pattern in _SHAPE_PATTERNS:
        if any(hint in lower for hint in hints):
            s = pattern.sub(_hide_shape, s)
    if any(hint in lower for hint in _NAME_HINTS):
        s = _ASSIGNMENT.sub(lambda match: _hide_value(match, flag=False), s)
        s = _FLAG.sub(lambda match: _hide_value(match, flag=True), s)
    return s


class Stream:
    """Takes secrets out of bytes as they come, in parts of any size. What comes out has whole lines alone, until `close`.

    A secret is found within its line, a key block over its lines. Bytes that are no text pass unchanged. At most `HELD_BYTES` are held:
    a longer line is cut where both parts are cleaned as the whole would be, and hidden where there is no such place.
    """

    def __init__(self, clean: Callable[[str], str] = text) -> None:
        self._clean = clean
        self._held = b""
        self._block_lines = 0  # of a key block that has begun and not ended

    def feed(self, data: bytes) -> bytes:
        """What can be shown now."""
        self._held += data
        end = max(self._held.rfind(b"\n"), self._held.rfind(b"\r")) + 1
        whole, self._held = self._held[:end], self._held[end:]
        shown = self._lines(whole) if whole else b""
        while len(self._held) > HELD_BYTES:
            shown += self._part_of_a_line()
        return shown

    def close(self) -> bytes:
        """What was held: the last line, which has no end."""
        left, self._held = self._held, b""
        return self._lines(left) if left else b""

    def _lines(self, data: bytes) -> bytes:
        lines = data.decode("utf-8", "surrogateescape")
        begun = f"{_BEGIN}\n" if 0 < self._block_lines <= _BLOCK_LINES else ""
        shown = self._clean(begun + lines).removeprefix(begun)
        blocks = list(_KEY_BLOCK.finditer(begun + lines)) if begun or _BEGINS in lines else []
        is_open = bool(blocks) and not blocks[-1][3]
        self._block_lines = (self._block_lines if begun else 1) + lines.count("\n") if is_open else 0
        return shown.encode("utf-8", "surrogateescape")

    def _part_of_a_line(self) -> bytes:
        for cut in range(HELD_BYTES - _AROUND, HELD_BYTES // 2, -_AROUND // 16):
            around = (self._held[cut - _AROUND : cut], self._held[cut : cut + _AROUND])
            first, second = (part.decode("utf-8", "surrogateescape") for part in around)
            if self._clean(first) + self._clean(second) == self._clean(first + second):
                whole, self._held = self._held[:cut], self._held[cut:]
                return self._lines(whole)
        self._held = self._held[HELD_BYTES:]
        return REDACTED.encode()


def argv(args: Sequence[str]) -> tuple[str, ...]:
    """A command line word by word: the value of a secret's flag goes whole, all other words through `text`."""
    shown: list[str] = []
    hide = False
    for word in args:
        if hide and not word.startswith("-"):
            shown.append(REDACTED)
            hide = False
        else:
            shown.append(_word(word))
            hide = word.startswith("-") and _strength(word.lstrip("-")) is not None
    return tuple(shown)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Environment variables: a value goes whole where the name says "secret", else through `text`."""
    return {name: REDACTED if value and _strength(name) else text(value) for name, value in env.items()}


def _word(word: str) -> str:
    """One word of a command line; the X of `--api-key=X` or `logger.password=X` may hold spaces and quotes."""
    name, equals, value = word.partition("=")
    if equals and re.fullmatch(r"[-+~]{0,2}[\w.-]+", name) and _strength(name.lstrip("-+~")):
        return word if _empty(value) else f"{name}={REDACTED}"
    return text(word)


def _strength(name: str) -> str | None:
    """How much a name says that its value is a secret: `strong`, `weak` or None."""
    if _VOCABULARY_NAME.search(name):
        return None
    if _STRONG_NAME.search(name) or _ENVIRONMENT_TOKEN.match(name):
        return "strong"
    return "weak" if _WEAK_NAME.search(name) else None


def _empty(value: str) -> bool:
    return value.lower() in _NO_VALUE or value == REDACTED or bool(_REFERENCE.match(value))


def _hide_block(match: re.Match[str]) -> str:
    begin, body, end = match.groups()
    if "\n" not in body:
        return f"{begin}{REDACTED if body else ''}{end}"
    return begin + _BLOCK_LINE.sub(rf"\g<1>{REDACTED}", body) + end


def _hide_shape(match: re.Match[str]) -> str:
    return _replaced(match, "secret" if match.groupdict().get("secret") else 0)


def _hide_value(match: re.Match[str], *, flag: bool) -> str:
    strength = _strength(match["name"])
    group = "quoted" if match["quote"] else "bare"
    value = match[group]
    code = group == "bare" and (match["call"] or _EXPRESSION.match(value))
    if strength is None or code or _empty(value) or (strength == "weak" and not flag and not _OPAQUE.match(value)):
        return match.group()
    return _replaced(match, group)


def _replaced(match: re.Match[str], group: str | int) -> str:
    start, end = (place - match.start() for place in match.span(group))
    return match.group()[:start] + REDACTED + match.group()[end:]
