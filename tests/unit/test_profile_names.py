"""Names that look like what they are not."""

from __future__ import annotations

import pytest

from trainflash.profile.analysis import copies, words
from trainflash.profile.events import Kind


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("/home/me/dataloader/train.py(5): main", False),
        ("/home/me/data_loading/loop.py(12): step", False),
        ("torch/utils/data/dataloader.py(701): __next__", True),
        ("torch/utils/data/dataloader.py(701): _reset", False),
        ("train.py(20): get_batch", True),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", True),
    ],
)
def test_of_a_frame_the_function_tells_whether_it_loads(name, loads):
    assert words.is_loading(name) is loads


@pytest.mark.parametrize(
    ("name", "travels"),
    [
        ("small_reduce_kernel", False),
        ("warp_all_reduce_softmax", False),
        ("blockAllReduceSum", False),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", True),
        ("all-reduce.3", True),
        ("oneShotAllReduceKernel", True),
        ("multimem_all_gather_kernel", True),
    ],
)
def test_all_is_a_word_of_its_own(name, travels):
    assert words.is_communication(name) is travels


def test_collectives_of_symmetric_memory_are_named():
    assert words.collective("multimem_all_gather_kernel") == "all_gather"
    assert words.collective("two_shot_all_reduce_kernel") == "all_reduce"


def test_other_runtimes_wait_and_copy_too():
    assert words.is_synchronising("zeCommandListHostSynchronize") and words.is_synchronising("urQueueFinish")
    assert copies.direction("Memcpy M2D (MEMORY(Unknown) -> DEVICE)", Kind.MEMCPY)[0] == "H2D"
