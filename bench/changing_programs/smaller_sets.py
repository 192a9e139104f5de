"""Falls in both: fewer rows are still active as training goes on. The candidate looks at them in one go instead of one by one."""

from task import CANDIDATE, Task

task = Task()
for step in range(900):
    active = max(2, 64 - step // 14)
    if CANDIDATE:
        task.inputs[:active].norm(dim=1).tolist()
    else:
        [float(row.norm()) for row in task.inputs[:active] for _ in range(5)]
    task.step()
