"""Peak arithmetic rates of accelerators, TFLOP/s: dense (no structured sparsity), products accumulated in float32; and their memory.

Each row cites the maker's own sheet. What is not listed has no peak: no MFU and no floor. A card whose row lacks `tf32` has no TF32.
Half of a sheet's figure is taken where it states only the sparse rate. A MIG slice has no published peak of its own, and a processor's
depends on its clock under load: neither is listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_H100 = "NVIDIA H100 Tensor Core GPU datasheet, resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet"
_H200 = "NVIDIA H200 datasheet, nvidia.com/en-us/data-center/h200"
_CENTER = "nvidia.com/en-us/data-center"
_MI200 = "amd.com/en/products/accelerators/instinct/mi200"
_MI300 = "amd.com/en/products/accelerators/instinct/mi300"
_A100 = "NVIDIA A100 datasheet, nvidia.com/en-us/data-center/a100"
_V100 = "NVIDIA V100 datasheet, nvidia.com/en-us/data-center/v100"
_ADA = "NVIDIA Ada GPU architecture whitepaper, appendix A"
_GA102 = "NVIDIA Ampere GA102 GPU architecture whitepaper, appendix A"
_GEFORCE = (
    "NVIDIA, nvidia.com/en-us/geforce/graphics-cards: cores, boost clock and memory; operations of a core and clock by the whitepaper of"
)
_GEFORCE_30, _GEFORCE_40 = f"{_GEFORCE} GA102", f"{_GEFORCE} Ada"


@dataclass(frozen=True)
class Peak:
    """TFLOP/s of one device as torch shows it, and where the figure stands."""

    tflops: float
    source: str


@dataclass(frozen=True)
class Board:
    """Rates by number format; `pattern` is matched with the driver's name, first row wins.

    Of a card that is sold with several memories the fastest counts, and of caches the largest, so that a least time stays one.
    """

    pattern: str
    rates: dict[str, float]
    memory_gb_s: float  # of one device as torch shows it
    cache_mb: float  # what need not come from memory: the last cache before it
    source: str

    def moving_us(self, size: float) -> float:
        """Microseconds that a call takes at least which reads and writes `size` bytes: its last cache may have held as many before as it
        holds, and may keep as many for later."""
        return max(size - 2e6 * self.cache_mb, 0.0) / (self.memory_gb_s * 1e9) * 1e6


# Order matters: a more special name stands before a more general one.
BOARDS: tuple[Board, ...] = (
    Board(r"\bB200\b", {"bf16": 2250.0, "fp16": 2250.0, "fp8": 4500.0, "tf32": 1125.0, "fp32": 75.0}, 8000.0, 126,
          "NVIDIA HGX B200 (an eighth of the 8-GPU figures), nvidia.com/en-us/data-center/hgx"),
    Board(r"\bH200 NVL\b", {"bf16": 835.5, "fp16": 835.5, "fp8": 1670.5, "tf32": 417.5, "fp32": 60.0}, 4800.0, 50, _H200),
    Board(r"\bH200\b", {"bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "tf32": 494.7, "fp32": 66.9}, 4800.0, 50, _H200),
    Board(r"\bGH200\b", {"bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "tf32": 494.7, "fp32": 66.9}, 4900.0, 60,
          "NVIDIA GH200 Grace Hopper datasheet, resources.nvidia.com/en-us-grace-cpu/grace-hopper-superchip"),
    Board(r"\bH100 NVL\b", {"bf16": 835.5, "fp16": 835.5, "fp8": 1670.5, "tf32": 417.5, "fp32": 60.0}, 3900.0, 60, _H100),
    Board(r"\bH100 PCIe\b", {"bf16": 756.4, "fp16": 756.4, "fp8": 1513.0, "tf32": 378.2, "fp32": 51.2}, 2000.0, 50, _H100),
    Board(r"\bH100\b", {"bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "tf32": 494.7, "fp32": 66.9}, 3350.0, 50, _H100),
    Board(r"\bA100\b", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}, 2039.0, 40, _A100),
    Board(r"\bA30\b", {"bf16": 165.0, "fp16": 165.0, "tf32": 82.0, "fp32": 10.3}, 933.0, 24,
          f"NVIDIA A30 datasheet, {_CENTER}/products/a30-gpu"),
    Board(r"\bA40\b", {"bf16": 149.7, "fp16": 149.7, "tf32": 74.8, "fp32": 37.4}, 696.0, 6,
          f"NVIDIA A40 datasheet, {_CENTER}/a40"),
    Board(r"\bA10\b", {"bf16": 125.0, "fp16": 125.0, "tf32": 62.5, "fp32": 31.2}, 600.0, 6,
          f"NVIDIA A10 datasheet, {_CENTER}/products/a10-gpu"),
    Board(r"\bRTX A6000\b", {"bf16": 154.8, "fp16": 154.8, "tf32": 77.4, "fp32": 38.7}, 768.0, 6, _GA102),
    Board(r"\bL40S\b", {"bf16": 362.05, "fp16": 362.05, "fp8": 733.0, "tf32": 183.0, "fp32": 91.6}, 864.0, 96,
          f"NVIDIA L40S datasheet, {_CENTER}/l40s"),
    Board(r"\bL40\b", {"bf16": 181.05, "fp16": 181.05, "fp8": 362.0, "tf32": 90.5, "fp32": 90.5}, 864.0, 96,
          f"NVIDIA L40 datasheet, {_CENTER}/l40"),
    Board(r"\bL4\b", {"bf16": 121.0, "fp16": 121.0, "fp8": 242.5, "tf32": 60.0, "fp32": 30.3}, 300.0, 48,
          f"NVIDIA L4 datasheet, {_CENTER}/l4"),
    Board(r"\bRTX 4090\b(?! D| Laptop)", {"bf16": 165.2, "fp16": 165.2, "tf32": 82.6, "fp32": 82.6}, 1008.0, 72, _ADA),
    Board(r"\bRTX 3090\b(?! Ti)", {"bf16": 71.0, "fp16": 71.0, "tf32": 35.6, "fp32": 35.6}, 936.0, 6, _GA102),
    Board(r"\bRTX 3060\b(?! Ti| Laptop)", {"bf16": 25.4, "fp16": 25.4, "tf32": 12.7, "fp32": 12.7}, 360.0, 3, _GEFORCE_30),
    Board(r"\bRTX 3070\b(?! Ti| Laptop)", {"bf16": 40.6, "fp16": 40.6, "tf32": 20.3, "fp32": 20.3}, 448.0, 4, _GEFORCE_30),
    Board(r"\bRTX 3070 Ti\b(?! Laptop)", {"bf16": 43.4, "fp16": 43.4, "tf32": 21.7, "fp32": 21.7}, 608.0, 4, _GEFORCE_30),
    Board(r"\bRTX 4060\b(?! Ti| Laptop)", {"bf16": 30.2, "fp16": 30.2, "tf32": 15.1, "fp32": 15.1}, 272.0, 24, _GEFORCE_40),
    Board(r"\bRTX 4070\b(?! Ti| SUPER| Laptop)", {"bf16": 58.2, "fp16": 58.2, "tf32": 29.1, "fp32": 29.1}, 504.0, 36, _GEFORCE_40),
    Board(r"\bRTX 4080\b(?! SUPER| Laptop)", {"bf16": 97.4, "fp16": 97.4, "tf32": 48.7, "fp32": 48.7}, 716.8, 64, _GEFORCE_40),
    Board(r"\bRTX 4080 SUPER\b", {"bf16": 104.4, "fp16": 104.4, "tf32": 52.2, "fp32": 52.2}, 736.0, 64, _GEFORCE_40),
    Board(r"\bV100S\b", {"fp16": 130.0, "fp32": 16.4}, 1134.0, 6, _V100),
    Board(r"\bV100-(?:PCIE|FHHL)", {"fp16": 112.0, "fp32": 14.0}, 900.0, 6, _V100),
    Board(r"\bV100\b", {"fp16": 125.0, "fp32": 15.7}, 900.0, 6, _V100),
    Board(r"\bT4\b", {"fp16": 65.0, "fp32": 8.1}, 320.0, 4,
          f"NVIDIA T4 datasheet, {_CENTER}/tesla-t4"),
    Board(r"\bMI325X\b", {"bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9, "tf32": 653.7, "fp32": 163.4}, 6000.0, 256,
          f"AMD Instinct MI325X data sheet, {_MI300}/mi325x.html"),
    Board(r"\bMI300X\b", {"bf16": 1307.4, "fp16": 1307.4, "fp8": 2614.9, "tf32": 653.7, "fp32": 163.4}, 5300.0, 256,
          f"AMD Instinct MI300X data sheet, {_MI300}/mi300x.html"),
    Board(r"\bMI300A\b", {"bf16": 980.6, "fp16": 980.6, "fp8": 1961.2, "tf32": 490.3, "fp32": 122.6}, 5300.0, 256,
          f"AMD Instinct MI300A data sheet, {_MI300}/mi300a.html"),
    Board(r"\bMI250X\b", {"bf16": 191.5, "fp16": 191.5, "fp32": 47.9}, 1638.4, 8,
          f"AMD Instinct MI250X data sheet (half: torch shows each of the two dies), {_MI200}/mi250x.html"),
    Board(r"\bMI250\b", {"bf16": 181.0, "fp16": 181.0, "fp32": 45.3}, 1638.4, 8,
          f"AMD Instinct MI250 data sheet (half: torch shows each of the two dies), {_MI200}/mi250.html"),
    Board(r"\bMI210\b", {"bf16": 181.0, "fp16": 181.0, "fp32": 45.3}, 1638.4, 8,
          f"AMD Instinct MI210 data sheet, {_MI200}/mi210.html"),
    Board(r"\bMI100\b", {"bf16": 92.3, "fp16": 184.6, "fp32": 46.1}, 1228.8, 8,
          "AMD Instinct MI100 data sheet, amd.com/en/products/accelerators/instinct/mi100.html"),
)  # fmt: skip

FORMATS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "tfloat32": "tf32", "float8": "fp8"}


def board(name: str) -> Board | None:
    """The row of the accelerator that the driver calls `name`; None: not known, or a slice of one."""
    if re.search(r"\bMIG\b", name):
        return None
    return next((each for each in BOARDS if re.search(each.pattern, name, re.IGNORECASE)), None)


def peak(name: str, dtype: str) -> Peak | None:
    """The peak of the accelerator that the driver calls `name` for torch's `dtype` ("tfloat32": float32 by TF32); None: not known."""
    found = board(name)
    rate = found.rates.get(FORMATS.get(dtype, dtype)) if found else None
    return None if found is None or rate is None else Peak(rate, found.source)
