"""Which task a line of input is of, and the key that its sample has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

import pyarrow as pa

from adjudge.errors import InputError
from adjudge.protocols.flight.fields import TASKS, Task, task_named_in
from adjudge.readers.blocks import Block


class Lines:
    """What both roles do alike: which task a line is of, and its key.

    With several tasks keys begin with the task. Matched by line, a record's key is its number among the records of its
    file, blank lines not counted, plus the offset of its task.
    """

    def __init__(self, tasks: Sequence[Task], offsets: dict[str, int] | None) -> None:
        self.tasks, self.offsets = tasks, offsets
        self.several = len(tasks) > 1
        self._seen: dict[int, int] = {}

    @property
    def by_line(self) -> bool:
        """Whether records are matched by their place in the file."""
        return self.offsets is not None

    def numbers(self, block: Block) -> range:
        """The places of a block's records among those of its file, from 1."""
        first = self._seen.get(block.file, 0) + 1
        self._seen[block.file] = first - 1 + len(block)
        return range(first, first + len(block))

    def tasks_of(self, block: Block, told: Sequence[str | None]) -> list[Task]:
        """The task of every record: as it says itself, as its file is named, or the only one there is."""
        if not self.several and told.count(None) == len(told):
            return [self.tasks[0]] * len(told)
        named = task_named_in(block.path) if self.several else self.tasks[0].name
        asked = {task.name: task for task in self.tasks}
        names = [name or named for name in told]
        others = [row for row, name in enumerate(names) if name not in asked]
        if others:
            self._refuse_task(block, names, others)
        return [asked[str(name)] for name in names]

    def _refuse_task(self, block: Block, names: Sequence[str | None], others: Sequence[int]) -> NoReturn:
        first = names[others[0]]
        run = ",".join(task.name for task in self.tasks)
        what = f"are of task {first!r}" if first else "do not say their task (`task_id`), nor does the file's name"
        among = f"{len(others):,} of the {len(block):,} records here" if len(others) > 1 else "the record"
        known = sorted({name for name in names if name in TASKS} | {task.name for task in self.tasks})
        hint = (
            f"--task {','.join(known)} judges each as its own."
            if first in TASKS
            else f"The tasks are {', '.join(TASKS)}."
        )
        line = int(block.lines[others[0]])
        raise InputError(f"{among} {what}, the run is of {run}.", file=block.path, line=line, hint=hint)

    def keys(self, task: Task, names: Iterable[str | int]) -> pa.StringArray:
        """The keys of samples, or of models, with these names."""
        words = map(str, names)
        return pa.array([f"{task.name}/{word}" for word in words] if self.several else list(words), pa.string())
