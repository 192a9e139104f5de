"""Names of kernels for people: C++ without namespaces, template arguments and parameter lists. JSON keeps them whole."""

from __future__ import annotations

import re

_MANGLED = re.compile(r"_ZN(K?)((?:\d+[A-Za-z_]\w*?)+)(?=I|E|\b|\d)\w*")
_PARAMETERS = re.compile(
    r"(?<=[\w\]])\((?:[^()]*(?:[*&]|::)[^()]*|(?:(?:unsigned|const|int|long|float|double|bool|char|void|half)[\s,\w]*)*)\)(?:\s*\[clone[^\]]*\])?"
)
_ARGUMENTS = re.compile(r"(?<=[\w\]])\((?!anonymous)[^()]*\)(?:\s*\[clone[^\]]*\])?")
_NAMESPACES = re.compile(r"(?:\(anonymous namespace\)::|\b(?:at|native|c10|std|detail|cuda|internal|thrust|cub)::)+")
_TELLING = re.compile(r"\b(\w*Functor\w*|\w+Ops|\w+_kernel_(?:cuda|impl)|cutlass_\w+|\w*multi_tensor\w*)\b")
_TENSILE = re.compile(r"\b(Cijk_[A-Za-z]+_[A-Za-z]+_[A-Z_]+?)(?:_(?:HA|Bias|SAV|UserArgs|S|BH)\w*?)?_(MT\d+x\d+x\d+)\w*")


def readable(text: str) -> str:
    """The text with its C++ names shortened; anything else as it is."""
    if not any(mark in text for mark in ("<", "::", "_ZN", "Cijk_", "*", "void ")):
        return text
    text = _MANGLED.sub(lambda found: _demangled(found[0]), text)
    text = _TENSILE.sub(r"\1 \2", text)
    function = "void " in text
    text = _without_templates(text)
    last = None
    while text != last:
        last, text = text, (_ARGUMENTS if function else _PARAMETERS).sub("", text)
    return _NAMESPACES.sub("", text).replace("void ", "")


def _demangled(name: str) -> str:
    """The nested name of an Itanium-mangled symbol, without its arguments."""
    place, parts = 3 + name.startswith("_ZNK"), []
    while place < len(name) and name[place].isdigit():
        digits = re.match(r"\d+", name[place:])[0]  # type: ignore[index]
        place += len(digits)
        parts.append(name[place : place + int(digits)])
        place += int(digits)
    return "::".join(part for part in parts if not part.startswith("_GLOBAL_")) or name


def _without_templates(text: str) -> str:
    """Balanced `<…>` behind a name left out; of a kernel that is made for a functor, the functor stays in brackets."""
    kept: list[str] = []
    place = 0
    while place < len(text):
        char = text[place]
        end = _closing(text, place) if char == "<" and place and (text[place - 1].isalnum() or text[place - 1] == "_") else None
        if end is None:
            kept.append(char)
            place += 1
            continue
        told = _TELLING.search(text[place + 1 : end])
        kept.append(f"[{told[1]}]" if told and told[1] not in "".join(kept) else "")
        place = end + 1
    return "".join(kept)


def _closing(text: str, at: int) -> int | None:
    """Where the bracket that opens at `at` closes; the end of a text that was cut."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "<") - (text[place] == ">" and text[place - 1] != "-")
        if depth == 0:
            return place
    return len(text) - 1 if depth > 0 and len(text) > at + 40 else None
