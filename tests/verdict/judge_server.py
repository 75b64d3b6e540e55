"""Scripted judges on loopback that speak chat completions; the model's name says which one. Run as a process of its own.

It prints its port on the first line and ends when its standard input does.
"""

import asyncio
import json
import re
import sys

SEEN: dict[str, int] = {}
LINE = re.compile(r"^\[(A\d+-[0-9a-f]+)\] .*?· (pass|fail CRITICAL|fail WARNING|not_applicable|error) · ", re.MULTILINE)


def judgement(verdict, cites, attribution=(), quotes=()):
    return json.dumps(
        {"verdict": verdict, "cites": list(cites), "attribution": list(attribution), "quotes": list(quotes)}
    )


def faithful(user):
    marks = LINE.findall(user.split("\nANSWER-")[0])
    critical = [mark for mark, outcome in marks if outcome == "fail CRITICAL"]
    if critical:
        reason = {"reason": "a critical check failed", "cites": critical[:1], "severity": "CRITICAL", "quote": None}
        return judgement("ineligible", critical, [reason])
    return judgement("eligible", [mark for mark, outcome in marks if outcome == "pass"][:3])


def strict(user):
    marks = LINE.findall(user.split("\nANSWER-")[0])
    warned = [mark for mark, outcome in marks if outcome == "fail WARNING"]
    if warned and not any(outcome == "fail CRITICAL" for _, outcome in marks):
        reason = {"reason": "no pilot would accept it", "cites": warned[:1], "severity": "WARNING", "quote": None}
        return judgement("ineligible", warned, [reason])
    return faithful(user)


def lenient(user):
    marks = [mark for mark, _ in LINE.findall(user)]
    return judgement("eligible", marks[:1])


def misquoting(user):
    answer = json.loads(faithful(user))
    quoted = {"reason": "it says so itself", "cites": answer["cites"][:1], "severity": "CRITICAL", "quote": "I am lost"}
    if answer["verdict"] == "ineligible":
        answer["attribution"] = [quoted]
    answer["quotes"] = ["I am lost"]
    return json.dumps(answer)


def obedient(user):
    """Does what the answer under judgement tells it."""
    return lenient(user) if "say eligible" in user else faithful(user)


def fickle(user, seed):
    return faithful(user) if seed % 2 else strict(user)


JUDGES = {
    "faithful": faithful,
    "strict": strict,
    "lenient": lenient,
    "obedient": obedient,
    "misquoting": misquoting,
    "ghost": lambda _: judgement("ineligible", ["A999-000000000000", "EVID_999"]),
    "prose": lambda _: "In my view this is fine. Trust me.",
    "foreign": lambda _: "Dieses Ergebnis ist zulässig.",
    "fenced": lambda user: f"Here you are:\n```json\n{faithful(user)}\n```\n",
    "endless": lambda user: faithful(user) + " " * 200_000,
    "learning": lambda user: faithful(user) if "was refused" in user else judgement("eligible", []),
}


def completion(text, finish="stop", model="judge-1"):
    return json.dumps(
        {
            "model": model,
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
    ).encode()


async def behave(request):
    """(status, body) of one request."""
    model, user = request["model"], request["messages"][-1]["content"]
    key = model + user + str(request.get("seed"))
    SEEN[key] = SEEN.get(key, 0) + 1
    if model == "missing":
        return "404 Not Found", b'{"error": {"message": "no such model"}}'
    if model == "locked":
        return "401 Unauthorized", b'{"error": {"message": "wrong key sk-very-secret-key-123456"}}'
    if model == "limited" and SEEN[key] == 1:
        return "429 Too Many Requests", b'{"error": "slow down"}'
    if model == "flaky" and SEEN[key] == 1:
        return "500 Internal Server Error", b"oops"
    if model == "down":
        return "500 Internal Server Error", b"oops"
    if model == "no-completion":
        return "200 OK", b"<html>hello</html>"
    if model == "cut":
        return "200 OK", completion(faithful(user)[:20], "length")
    if model == "slow":
        await asyncio.sleep(0.05)
    if model == "asleep":
        await asyncio.sleep(3)
    if model == "fickle":
        return "200 OK", completion(fickle(user, request["seed"]))
    judge = JUDGES.get(model, faithful)
    return "200 OK", completion(judge(user))


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            size = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE)[1])
            status, body = await behave(json.loads(await reader.readexactly(size)))
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
