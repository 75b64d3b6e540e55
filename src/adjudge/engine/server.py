"""The process that workers are forked from: it imports this first, and removes the folder of its socket when it ends.

It ends with its parent, also where that was killed and can remove nothing. Any other process that imports this is told of no folder.
"""

from __future__ import annotations

import atexit
import os
import shutil

FOLDER = "ADJUDGE_SERVER_FOLDER"
"""The environment variable in which the server is told of the folder."""

if FOLDER in os.environ:
    atexit.register(shutil.rmtree, os.environ.pop(FOLDER), ignore_errors=True)
