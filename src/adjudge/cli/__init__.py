"""The command line.

A signal that comes while the program is still being imported ends it with the exit code of every interruption: nothing was begun, so
nothing has to be cleared up. Where another program imports this package its signals are its own.
"""

import os
import signal
import sys


def _leave(number: int, frame: object) -> None:
    del frame
    os._exit(128 + number)


if sys.argv and os.path.basename(sys.argv[0]) in {"adjudge", "-m"}:  # noqa: PTH119 -- pathlib takes as long as all else here
    for _number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(_number) is not signal.SIG_IGN:  # a job in the background of a shell ignores Ctrl-C
            signal.signal(_number, _leave)
