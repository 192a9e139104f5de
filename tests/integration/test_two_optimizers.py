"""Two networks with an optimizer each: what one gets in updates of the other's alone, and throws away, is in vain, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from edited_program import judged, sandbox_of
from probed import diagnosed

from trainflash.schema import Summary

ADVERSARIAL = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def net(inner, outer, width=96):
    first = nn.Linear(inner, width), nn.BatchNorm1d(width), nn.Tanh()
    return nn.Sequential(*first, nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outer))


maker, critic = net(8, 16), net(16, 1)
makes = torch.optim.RMSprop(maker.parameters(), lr=1e-4)
judges = torch.optim.RMSprop(critic.parameters(), lr=1e-4)
data = torch.randn(400, 16)


def judge(real, z):
    fake = maker(z)
    judges.zero_grad()
    loss = critic(fake).mean() - critic(real).mean()
    loss.backward()
    judges.step()
    return loss


def make(z):
    makes.zero_grad()
    loss = -critic(maker(z)).mean()
    loss.backward()
    makes.step()
    return loss


for number in range(STEPS):
    print(judge(data[torch.randint(400, (32,))], torch.randn(32, 8)).item(), flush=True)
    if number % 3 == 2:
        print(make(torch.randn(32, 8)).item(), flush=True)
"""
JOINT = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
encoder = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 8))
decoder = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 16))
for_decoder = torch.optim.Adam(decoder.parameters(), lr=1e-3)
for_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-3)
data = torch.randn(400, 16)
for number in range(90):
    x = data[torch.randint(400, (32,))]
    code = encoder(x)
    loss = (decoder(code) - x).square().mean()
    for_decoder.zero_grad()
    for_encoder.zero_grad()
    loss.backward()
    for_decoder.step()
    for_encoder.step()
    print(loss.item(), flush=True)
"""
FAKE, MADE = "fake = maker(z)", "loss = -critic(maker(z)).mean()"
DETACHED = (FAKE, "fake = maker(z).detach()")
UNDER = (FAKE, "with torch.no_grad():\n        fake = maker(z)")
PROGRAM = ADVERSARIAL.replace("STEPS", "90") + 'torch.save([maker.state_dict(), critic.state_dict()], "last.pt")\n'
STILL = PROGRAM.replace("    makes.zero_grad()\n", "    critic.requires_grad_(False)\n    makes.zero_grad()\n").replace(
    "    makes.step()\n", "    makes.step()\n    critic.requires_grad_(True)\n"
)
OTHER = {
    "a maker that learns nothing": (MADE, "loss = -critic(maker(z).detach()).mean()"),
    "other noise for the critic": (FAKE, "fake = maker(z * 1.5).detach()"),
    "fakes of evaluation": (FAKE, "maker.eval()\n    fake = maker(z).detach()\n    maker.train()"),
    "the same fakes twice": (FAKE, "fake = maker(z[torch.arange(32) // 2]).detach()"),
    "real ones alone": ("critic(fake).mean() - critic(real).mean()", "-critic(real).mean()"),
    "fewer updates of the maker": ("number % 3 == 2", "number % 6 == 5"),
}


def seen(tmp_path: Path, text: str) -> Summary:
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    return diagnosed(tmp_path, path)


@pytest.mark.parametrize(
    "cleared",
    ["makes.zero_grad()", pytest.param("makes.zero_grad(set_to_none=False)", marks=pytest.mark.full)],
)
def test_what_a_maker_gets_for_its_critic(tmp_path, cleared):
    text = ADVERSARIAL.replace("STEPS", "160").replace("makes.zero_grad()", cleared)
    (vain,) = seen(tmp_path, text).in_vain
    assert FAKE in text.splitlines()[vain.location.line - 1]
    assert vain.direct and vain.held and vain.share > 0
    assert vain.per_step == 3.0, "critic updates in a step of both"


@pytest.mark.full
@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(DETACHED, id="detached"),
        pytest.param(UNDER, id="without gradients"),
        pytest.param(("    makes.zero_grad()\n", ""), id="gradients of both are used"),
    ],
)
def test_what_somebody_takes_or_nobody_computes(tmp_path, edit):
    assert seen(tmp_path, ADVERSARIAL.replace("STEPS", "160").replace(*edit)).in_vain == ()


@pytest.mark.full
def test_networks_live_no_longer_than_without_the_probe(tmp_path):
    """The first forward of all is one without gradients, as of a generator for its critic."""
    text = ADVERSARIAL.replace("STEPS", "40").replace(*UNDER)
    text += "import weakref\nleft = weakref.ref(maker), weakref.ref(critic)\ndel maker, critic, judge, make\n"
    seen(tmp_path, text + "print([each() is None for each in left])\n")


@pytest.mark.full
def test_one_backward_for_two_optimizers_is_nothing_in_vain(tmp_path):
    assert seen(tmp_path, JOINT.replace("range(90)", "range(60)")).in_vain == ()


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("edit", [DETACHED, UNDER], ids=["detached", "without gradients"])
@pytest.mark.parametrize("program", [PROGRAM, STILL], ids=["plain", "a critic that stands still meanwhile"])
def test_fakes_without_gradients_are_the_same_training(tmp_path, program, edit):
    found = judged(sandbox_of(tmp_path, program), program, tmp_path / "runs", edit)
    assert (found.verdict, found.changed) == ("same", ()), found.reasons


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", OTHER)
def test_other_fakes_are_refused(tmp_path, name):
    found = judged(sandbox_of(tmp_path, PROGRAM), PROGRAM, tmp_path / "runs", OTHER[name])
    assert found.verdict == "changed", found.reasons


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        (("    code = encoder(x)", "    code = encoder(x) + 0"), "same"),
        (("    code = encoder(x)", "    code = encoder(x).detach()"), "changed"),
        (("torch.randint(400, (32,))", "torch.randint(200, (32,))"), "changed"),
        (("encoder(x)\n", "encoder(x.flip(0))\n"), "changed"),
    ],
    ids=["the same", "detached", "fewer samples", "another order"],
)
def test_one_backward_for_two_optimizers(tmp_path, edit, verdict):
    found = judged(sandbox_of(tmp_path, JOINT), JOINT, tmp_path / "runs", edit)
    assert found.verdict == verdict, found.reasons
