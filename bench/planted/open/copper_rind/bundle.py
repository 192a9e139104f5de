"""Model bundles as the dairy institute publishes them: a card (JSON) and weights in one folder."""

import json
import os
from pathlib import Path

import torch
from torch import nn

KNOBS = {
    "flush_denormal": torch.set_flush_denormal,
    "matmul": torch.set_float32_matmul_precision,
    "intra_op": torch.set_num_threads,
}


class Reference(nn.Module):
    """Random cosine features and a ridge readout; what the institute calls the large model."""

    def __init__(self, card):
        super().__init__()
        want, bands = card["features"], card["inputs"]["bands"]
        g = torch.Generator().manual_seed(want["seed"])
        self.register_buffer("mix", torch.randn(bands, want["count"], generator=g) * want["scale"])
        self.register_buffer("shift", torch.rand(want["count"], generator=g) * 6.2832)
        self.register_buffer("readout", torch.zeros(want["count"], len(card["stages"])))

    def features(self, spectra):
        return torch.cos(spectra @ self.mix + self.shift)

    def forward(self, spectra):
        return self.features(spectra) @ self.readout

    def fit(self, spectra, stage, ridge):
        f = self.features(spectra)
        goal = nn.functional.one_hot(stage, self.readout.shape[1]) * 6.0 - 1.0
        self.readout.copy_(torch.linalg.solve(f.T @ f + ridge * torch.eye(f.shape[1]), f.T @ goal))


def unpack(folder, calibrate):
    """The model behind a card, frozen, under the settings that it was validated with."""
    card = json.loads((Path(folder) / "card.json").read_text())
    model = Reference(card).requires_grad_(False)
    weights = Path(folder) / "weights.pt"
    if weights.exists():
        model.load_state_dict(torch.load(weights))
    else:
        model.fit(*calibrate(), card["ridge"])
        torch.save(model.state_dict(), weights)
    runtime = card.get("runtime", {})
    if os.environ.get("PLANTED_FIX") == "1":
        runtime = {knob: value for knob, value in runtime.items() if knob != "intra_op"}
    for knob, value in runtime.items():
        KNOBS[knob](value)
    return model.eval(), card
