import os
import time

import torch
import torch._dynamo
from torch.nn import functional as F

from distill import Lesson, stack
from fruit import near_infrared
from options import Options

torch._dynamo.config.cache_size_limit = 256


def rehearse(tutor, spectra, kind, options, generator):
    optimizer = torch.optim.Adam(tutor.parameters(), lr=options.lr)
    for _ in range(options.rehearsal):
        rows = torch.randint(0, len(kind), (options.batch,), generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(tutor(spectra[rows]), kind[rows]).backward()
        optimizer.step()
    return tutor.eval()


def teach(options, lessons):
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    spectra, kind = near_infrared(6000, options.features, options.kinds, generator)
    tutor = rehearse(stack(options.features, options.tutor_width, options.kinds, 2), spectra, kind, options, generator)
    pupil = stack(options.features, options.pupil_width, options.kinds, 1)
    lesson = torch.compile(Lesson(pupil, options), backend=options.backend)
    optimizer = torch.optim.Adam(pupil.parameters(), lr=options.lr)
    start = time.time()
    for number in range(lessons):
        rows = torch.randint(0, len(kind), (options.batch,), generator=generator)
        with torch.no_grad():
            told = tutor(spectra[rows])
        loss = lesson(spectra[rows], told, kind[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 40 == 0:
            print(f"lesson {number}: {loss.item():.4f}")
    print(f"{lessons} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    options = Options()
    teach(options, int(os.environ.get("PLANTED_STEPS", options.lessons)))
