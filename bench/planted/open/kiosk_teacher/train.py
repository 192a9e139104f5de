"""Which fruit lies on the scales? Few labels, many pictures: the student learns from an averaged copy of itself."""

import os

import torch
from hooks import AverageTeacher, KeepBest, Narrator
from scales import Scales
from student import FruitNet
from trainer import Trainer

torch.set_num_threads(1)


def main():
    torch.manual_seed(29)
    scales = Scales()
    student = FruitNet(scales.fruits)
    teacher = FruitNet(scales.fruits).requires_grad_(False)
    teacher.load_state_dict(student.state_dict())
    trainer = Trainer(
        student,
        teacher,
        torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9, nesterov=True, foreach=True),
        hooks=[AverageTeacher(0.99), KeepBest("runs"), Narrator(25)],
    )
    trainer.run(scales.batches(), int(os.environ.get("PLANTED_STEPS", 1500)))
    print(f"{trainer.step} steps in {trainer.seconds:.2f}s, loss {trainer.smooth:.4f}")


if __name__ == "__main__":
    main()
