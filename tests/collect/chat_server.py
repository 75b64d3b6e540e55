"""A chat-completions server on loopback whose behaviour each question chooses; run as a process of its own.

It prints its port on the first line. The first word of a question says what happens; `GET /counts` tells how often each
question came, and how many requests were open at once.
"""

import asyncio
import json
import sys

SEEN: dict[str, int] = {}
OPEN = {"now": 0, "most": 0}
VERDICT = '{"prediction": "fake", "confidence": 0.75}'


def completion(content, **message):
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "model": "echo-2026-01",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, **message},
                    "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }
    ).encode()


PLAIN = completion(VERDICT)


def http(body, status="200 OK", *headers, length=None):
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {length or len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


FAST = http(PLAIN)


async def behave(question, asked, request, headers, write):
    """Write the answer to one question; False ends the connection."""
    word = question.split()[0] if question.split() else ""
    if word == "rate":  # twice too many requests, then the answer
        if asked <= 2:
            write(http(b'{"error": "slow down"}', "429 Too Many Requests", "retry-after: 0.2"))
            return True
    elif word == "patience":
        write(http(b"{}", "429 Too Many Requests", "retry-after: 86400"))
        return True
    elif word == "flaky" and asked == 1:
        write(http(b"oops", "500 Internal Server Error"))
        return True
    elif word == "broken":
        write(http(b"oops", "503 Service Unavailable"))
        return True
    elif word == "forbidden":
        said = json.dumps({"error": f"key {headers.get('authorization')} is not allowed"}).encode()
        write(http(said, "401 Unauthorized"))
        return True
    elif word == "echo":
        write(http(completion(f"you said {headers.get('authorization')}")))
        return True
    elif word == "generous":
        more = {
            "cache": {"hit": True},
            "rationale": "it glows",
            "timings": {"vision_llm_seconds": 0.5},
            "models": {"vision": "v-1"},
        }
        body = json.loads(completion('{"prediction": "fake"}', reasoning_content="hm")) | more
        body |= {f"key_{number}": number for number in range(10)}
        write(http(json.dumps(body).encode()))
        return True
    elif word == "malformed":
        write(http(b'{"choices": [{"message": '))
        return True
    elif word == "shapeless":
        write(http(b'{"choices": []}'))
        return True
    elif word == "truncated":
        write(http(PLAIN[:20], length=len(PLAIN)))
        return False
    elif word == "drip":
        write(http(b"", length=len(PLAIN)))
        for byte in PLAIN[:40]:
            write(bytes([byte]))
            await asyncio.sleep(0.1)
        return False
    elif word == "huge":
        write(http(b"", length=64 << 20))
        for _ in range(64):
            if not write(b" " * (1 << 20)):
                return False
            await asyncio.sleep(0)
        return False
    elif word == "slow":
        await asyncio.sleep(0.05)
    elif word == "hang":
        await asyncio.sleep(30)
    elif word == "refuse":
        write(http(completion(None, refusal="I would rather not")))
        return True
    elif word == "unsure":
        write(http(completion('Well: {"prediction": "uncertain", "confidence": 0.4}')))
        return True
    elif word == "prose":
        write(http(completion("It looks real to me.")))
        return True
    elif word == "body":
        write(http(completion(json.dumps(request))))
        return True
    elif word == "tool" and request.get("tools"):
        told = [message for message in request["messages"] if message["role"] == "tool"]
        if not told:
            calls = [
                {"id": "a", "type": "function", "function": {"name": "measure", "arguments": '{"width": 3}'}},
                {"id": "b", "type": "function", "function": {"name": "measure", "arguments": '{"width": "wide"}'}},
                {"id": "c", "type": "function", "function": {"name": "nothing", "arguments": "{}"}},
            ]
            write(http(completion(None, tool_calls=calls)))
        else:
            write(http(completion(json.dumps([message["content"] for message in told]))))
        return True
    elif word == "endless":
        calls = [{"id": "a", "type": "function", "function": {"name": "measure", "arguments": '{"width": 1}'}}]
        write(http(completion(None, tool_calls=calls)))
        return True
    write(FAST)
    return True


class Connection(asyncio.Protocol):
    def __init__(self):
        self.buffer = bytearray()
        self.task = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        lines = self.buffer[:head].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        end = head + 4 + int(headers.get("content-length", 0))
        if len(self.buffer) < end:
            return
        body = bytes(self.buffer[head + 4 : end])
        del self.buffer[:end]
        if lines[0].startswith("GET /counts"):
            self.transport.write(http(json.dumps({"seen": SEEN, "most": OPEN["most"]}).encode()))
            return
        request = json.loads(body)
        content = request["messages"][-1 if request["messages"][-1]["role"] == "user" else 0]["content"]
        content = next((m["content"] for m in request["messages"] if m["role"] == "user"), content)
        question = content if isinstance(content, str) else content[0]["text"]
        SEEN[question] = SEEN.get(question, 0) + 1
        if question.startswith("fast"):
            self.transport.write(FAST)
            return
        self.task = asyncio.ensure_future(self.answer(question, request, headers))

    def write(self, data):
        if self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    async def answer(self, question, request, headers):
        OPEN["now"] += 1
        OPEN["most"] = max(OPEN["most"], OPEN["now"])
        try:
            if not await behave(question, SEEN[question], request, headers, self.write):
                self.transport.close()
        finally:
            OPEN["now"] -= 1

    def connection_lost(self, exc):
        if self.task is not None:
            self.task.cancel()


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    # The parent holds the other end of standard input; when it is gone, so is the reason to be here.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
