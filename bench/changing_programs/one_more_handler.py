"""Stairs in the candidate: each epoch adds one more handler to the log. Faster in the first two of six epochs, slower in all."""

from task import CANDIDATE, Task

task, handlers = Task(), []
for step in range(840):
    outputs = task.step()
    if step % 140 == 0:
        handlers.append(lambda values: [f"{float(value):.4f}" for value in values.flatten()])
    if CANDIDATE:
        for handler in handlers:
            handler(outputs)
    else:
        for _ in range(2):
            handlers[0](outputs)
