"""A `cmd:` subject: one JSON line in, one out; the first word of the text says how it behaves."""

# ruff: noqa: T201 -- it answers on standard output

import json
import os
import sys
import time

for line in sys.stdin:
    request = json.loads(line)
    word = request["sample"].get("text", "").split()[0]
    if word == "crash":
        print("no memory left", file=sys.stderr, flush=True)
        os._exit(3)
    if word == "hang":
        time.sleep(30)
    if word == "slow":
        time.sleep(0.05)
    if word == "garbage":
        print("this is no JSON", flush=True)
        continue
    if word == "twice":
        sys.stdout.write('{"prediction": "real"}\n{"prediction": "fake"}\n')
        sys.stdout.flush()
        continue
    if word == "other":
        print(json.dumps({"id": "another", "prediction": "real"}), flush=True)
        continue
    if word == "leak":
        print(json.dumps({"response": str(dict(os.environ)), "prediction": "real"}), flush=True)
        continue
    print(
        json.dumps(
            {
                "id": request["id"],
                "prediction": "fake" if request["use_tools"] else "real",
                "confidence": 0.5,
                "response": f"pid {os.getpid()} sees {sorted(request['sample'])}",
            }
        ),
        flush=True,
    )
