"""Grows in the baseline: each step leaves one more hook on the first layer; the candidate registers one."""

from task import CANDIDATE, Task

task, seen = Task(), []
for step in range(800):
    if step == 0 or not CANDIDATE:
        task.model[0].register_forward_hook(lambda module, inputs, output: seen.append(float(output.detach().mean())))
    task.step()
