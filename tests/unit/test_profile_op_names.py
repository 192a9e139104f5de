"""Names of kernels, shortened for people."""

from __future__ import annotations

import pytest
from profile_scenarios import launched, profile, trace

from trainflash.profile.analysis.build import summarize
from trainflash.report import profiles
from trainflash.report.op_names import readable

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, float)"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (ADD, "vectorized_elementwise_kernel[CUDAFunctor_add]"),
        ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*, int)", "cunn_SoftMaxForward"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb1EEEvPT0_PT_S4_", "aiter::add_rmsnorm_quant_kernel"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x224x64_MI16x16x1_SN", "Cijk_Alik_Bljk_BBS MT256x224x64"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_f16>(Params)", "cutlass::Kernel2[cutlass_80_tensorop_f16]"),
        ("matmul_k(float*, float*, int)", "matmul_k"),
        ("PjitFunction(loss_fn)", "PjitFunction(loss_fn)"),
        ("forward (train.py:12)", "forward (train.py:12)"),
        ("3 ms < 5 ms", "3 ms < 5 ms"),
        ("aten::mm", "aten::mm"),
    ],
)  # fmt: skip
def test_readable(name, short):
    assert readable(name) == short


def test_reports_are_short_and_the_summary_is_whole():
    summary = summarize(profile(trace([each for n in range(40) for each in launched(ADD, n * 10, n * 10 + 5, 9, n + 1)])))
    assert summary.hot_ops[0].name == ADD
    assert "CUDAFunctor" in (said := profiles.markdown(summary)) and "Array" not in said
