"""What the names mean that ROCprofiler-SDK writes, into JSON as into Perfetto's protobuf.

Source: `category.hpp` and `domain_type.cpp` of ROCprofiler-SDK, and its names of copies (`MEMORY_COPY_HOST_TO_DEVICE`).
"""

from __future__ import annotations

from trainflash.profile.events import Kind
from trainflash.profile.sources.nsys_names import Range, nvtx_range

KINDS = {
    "kernel_dispatch": Kind.KERNEL,
    "memory_copy": Kind.MEMCPY,
    "hip_api": Kind.RUNTIME,
    "hsa_api": Kind.DRIVER,
    "rccl_api": Kind.ANNOTATION,
    "marker_api": Kind.ANNOTATION,
}
_COPIES = {"HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH", "DEVICE_TO_DEVICE": "DtoD", "HOST_TO_HOST": "HtoH"}
GPU = 2  # an agent's type


def copy(operation: str) -> str:
    """The name that Kineto gives such a copy."""
    way = next((short for long, short in _COPIES.items() if operation.endswith(long)), None)
    return f"Memcpy {way}" if way else "Memcpy"


def marker(text: str) -> Range:
    """What a roctx range says: the texts are those of NVTX."""
    return nvtx_range(text)
