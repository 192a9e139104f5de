"""The machine profile: the name under which a machine's baselines stand. Equal names: the machines may be compared.

It holds what decides how fast the same program runs: model and number of accelerators (of a slice its size), driver, CUDA or ROCm, torch,
and the generation of the instructions. On a machine without one: processor, cores that may be used, architecture, instructions, torch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from trainflash.schema import Accelerator

_VENDORS = re.compile(
    r"\b(?:NVIDIA|Tesla|GeForce|AMD|Instinct|Radeon|Graphics|Laptop GPU|Quadro|Intel|Core|Processor)\b|\((?:R|TM|C)\)", re.I
)
_MEMORY = re.compile(r"\s+\d+GB HBM\d\w*")  # of one model and board, such as "H100 80GB HBM3"
_MIG = re.compile(r"\bMIG\s+(\S+)")
_CPU_NOISE = re.compile(r"\bCPU\b|@.*$|\b\d+-Core\b.*$", re.I)


def profile(
    *,
    accelerators: Sequence[Accelerator],
    cpu: str | None,
    cpu_budget: float | None,
    arch: str,
    cpu_capability: str | None,
    driver: str | None,
    cuda: str | None,
    rocm: str | None,
    torch: str | None,
) -> str:
    """Such as `H100x8_driver550_cuda12.4_torch2.4_sm90` or `cpu-EPYC-7763x4_x86_64_AVX2_torch2.4`; what is not known is left out."""
    torch_part = f"torch{_two(torch)}" if torch else "notorch"
    if not accelerators:
        parts = [f"cpu-{_cpu(cpu)}x{_cores(cpu_budget)}", arch, cpu_capability, torch_part]
        return "_".join(slug(part) for part in parts if part)
    boards = Counter(board(each.name, each.mig) for each in accelerators)
    kind = accelerators[0].kind
    capabilities = sorted({each.capability for each in accelerators if each.capability})
    parts = [
        "+".join(f"{name}x{count}" for name, count in sorted(boards.items())),
        _driver(kind, driver),
        f"cuda{_two(cuda)}" if kind == "cuda" and cuda else None,
        f"rocm{_two(rocm)}" if kind == "rocm" and rocm else None,
        torch_part,
        "+".join(capabilities) if capabilities else ("mps" if kind == "mps" else None),
    ]
    return "_".join(part for part in parts if part)


def board(name: str, mig: str | None = None) -> str:
    """The accelerator's model: "NVIDIA H100 80GB HBM3" → "H100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb" → "A100-SXM4-40GB-MIG-1g.5gb"."""
    slice_of = mig or slice_name(name)
    plain = slug(_VENDORS.sub(" ", _MEMORY.sub("", _MIG.sub("", name)))) or "accelerator"
    return f"{plain}-MIG-{slug(slice_of)}" if slice_of else plain


def slice_name(name: str) -> str | None:
    """The slice that the driver's name of a MIG device ends with, such as "1g.5gb"."""
    found = _MIG.search(name)
    return found[1] if found else None


def slug(text: str) -> str:
    """`text` as a part of a file name: letters, digits, dot, hyphen, plus and underscore."""
    return re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9.+_-]+", "-", text.strip())).strip("-")


def _driver(kind: str, driver: str | None) -> str | None:
    if not driver:
        return None
    return f"driver{driver.partition('.')[0]}" if kind == "cuda" else f"driver{_two(driver)}"


def _two(version: str | None) -> str:
    """Major and minor number: "2.4.1+cu124" → "2.4"."""
    found = re.match(r"\d+(?:\.\d+)?", version or "")
    return found[0] if found else "unknown"


def _cpu(model: str | None) -> str:
    return slug(_VENDORS.sub(" ", _CPU_NOISE.sub(" ", model or ""))) or "unknown"


def _cores(budget: float | None) -> str:
    return "unknown" if budget is None else f"{budget:g}"
