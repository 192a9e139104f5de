# Bird call classifier on log-mel spectrograms of clips cut from field recordings (synthetic for now)
import functools
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = 21
SAMPLE_RATE = 16000
CLIP_SAMPLES = 12000
N_FFT = 512
HOP = 160
N_MELS = 48
NUM_RECORDINGS = 80
CALLS_PER_RECORDING = 6
BATCH_SIZE = 8
LR = 2e-3
STEPS = int(os.environ.get("PLANTED_STEPS", 800))
SPECIES = ["wren", "robin", "thrush", "warbler", "siskin"]

rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)


def synth_call(label):
    t = np.arange(CLIP_SAMPLES) / SAMPLE_RATE
    start = 1200 + 700 * label + rng.normal(0, 120)
    sweep = [900, -700, 300, -300, 1500][label] * (1 + rng.normal(0, 0.1))
    vibrato = 60 * (1 + label) * np.sin(2 * np.pi * (6 + 3 * label) * t)
    phase = 2 * np.pi * np.cumsum(start + sweep * t + vibrato) / SAMPLE_RATE
    gate = (np.sin(2 * np.pi * (2 + label) * t + rng.uniform(0, 6)) > -0.3).astype(float)
    return gate * np.sin(phase)


def make_recordings():
    recordings, clips = [], []
    for number in range(NUM_RECORDINGS):
        wave = rng.normal(0, rng.uniform(0.2, 0.5), CALLS_PER_RECORDING * CLIP_SAMPLES)
        for i in range(CALLS_PER_RECORDING):
            label = int(rng.integers(len(SPECIES)))
            wave[i * CLIP_SAMPLES : (i + 1) * CLIP_SAMPLES] += synth_call(label)
            clips.append((number, i * CLIP_SAMPLES, label))
        recordings.append(torch.from_numpy(wave.astype(np.float32)))
    return recordings, clips


def mel_filterbank(sample_rate, n_fft, n_mels, f_min=50.0, f_max=None):
    f_max = f_max or sample_rate / 2
    to_mel = lambda f: 2595 * np.log10(1 + f / 700)
    to_hz = lambda m: 700 * (10 ** (m / 2595) - 1)
    edges = to_hz(np.linspace(to_mel(f_min), to_mel(f_max), n_mels + 2))
    bins = np.floor((n_fft + 1) * edges / sample_rate).astype(int)
    bank = np.zeros((n_mels, n_fft // 2 + 1), dtype=np.float32)
    for m in range(1, n_mels + 1):
        left, center, right = bins[m - 1], bins[m], bins[m + 1]
        for k in range(left, center):
            bank[m - 1, k] = (k - left) / max(center - left, 1)
        for k in range(center, right):
            bank[m - 1, k] = (right - k) / max(right - center, 1)
    return torch.from_numpy(bank)


def power_spectrogram(wave):
    spec = torch.stft(wave, N_FFT, HOP, window=torch.hann_window(N_FFT), return_complex=True)
    return spec.abs().square()


def noise_floor(number):
    """Median power of each frequency bin over the whole recording."""
    return power_spectrogram(recordings[number]).median(dim=1, keepdim=True).values


if os.environ.get("PLANTED_FIX") == "1":
    noise_floor = functools.lru_cache(maxsize=None)(noise_floor)


class LogMel:
    def __init__(self, sample_rate, n_fft, n_mels):
        self.bank = mel_filterbank(sample_rate, n_fft, n_mels)

    def __call__(self, wave, floor):
        power = (power_spectrogram(wave) - floor).clamp_min(0)
        mel = self.bank @ power
        mel = torch.log(mel + 1e-5)
        return (mel - mel.mean()) / (mel.std() + 1e-5)


class BirdCalls(Dataset):
    """Labelled clips (recording number, first sample, species)."""

    def __init__(self, clips, augment):
        self.clips = clips
        self.augment = augment
        self.mel = LogMel(SAMPLE_RATE, N_FFT, N_MELS)

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, idx):
        number, first, label = self.clips[idx]
        wave = recordings[number][first : first + CLIP_SAMPLES]
        floor = noise_floor(number)
        if self.augment:
            wave = wave.roll(int(torch.randint(0, len(wave), ())))
        return self.mel(wave, floor)[None], label


class CallNet(nn.Module):
    def __init__(self, n_classes, width=12):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(width)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.norm3 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(4 * width, n_classes)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        x = F.relu(self.norm3(self.conv3(x)))
        x = torch.cat([x.mean(dim=(2, 3)), x.amax(dim=(2, 3))], dim=1)
        return self.fc(x)


recordings, clips = make_recordings()
cut = int(0.9 * len(clips))
train_set = BirdCalls(clips[:cut], augment=True)
test_set = BirdCalls(clips[cut:], augment=False)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
test_loader = DataLoader(test_set, batch_size=16)

model = CallNet(len(SPECIES))
optimizer = torch.optim.AdamW(model.parameters(), lr=LR)

step = 0
epoch = 0
start = time.perf_counter()
while step < STEPS:
    epoch += 1
    total = seen = 0
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        seen += len(y)
        step += 1
        if step == STEPS:
            break
    print(f"epoch {epoch} loss {total / seen:.4f}")
elapsed = time.perf_counter() - start

model.eval()
with torch.no_grad():
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
print(f"test accuracy {correct / len(test_set):.3f}")
print(f"{step} steps in {elapsed:.2f} s, loss {loss.item():.6f}")
