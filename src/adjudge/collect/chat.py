"""`openai:MODEL`: a server that speaks the chat-completions wire format, asked over httpx."""

from __future__ import annotations

import base64
import ipaddress
import mimetypes
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from adjudge.collect.python_subject import Tool
from adjudge.collect.subject import MAX_ANSWER, Image, Reply, Request, Subject, ToolUse, Unanswered, reply_of
from adjudge.errors import ConfigError

TOOL_ROUNDS = 8
_SHOWN = 300


class _Function(msgspec.Struct):
    name: str
    arguments: str = "{}"


class _ToolCall(msgspec.Struct):
    id: str
    function: _Function
    type: str = "function"


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: dict[str, Any] | None = None
    body: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Completion).decode
_UNDERSTOOD = frozenset({"choices", "model", "usage", "body"})
_OF_MESSAGE = frozenset({"role", "content", "refusal", "tool_calls"})


def public_url(url: str) -> str:
    """An address as it may be written down: no user, password, query or fragment."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    place = f"[{host}]" if ":" in host else host
    return urlunsplit((parts.scheme, place + (f":{parts.port}" if parts.port else ""), parts.path, "", ""))


def http_library(asking: str) -> Any:
    """httpx, or httpx2, which has the same names, whichever is installed."""
    for name in ("httpx", "httpx2"):
        with suppress(ImportError):
            return import_module(name)
    raise ConfigError(f"{asking} needs httpx or httpx2; install one with: pip install 'adjudge[collect]'")


class ChatSubject(Subject):
    """A chat model. The key goes into one header and is held nowhere else."""

    needs_prompt = True

    def __init__(  # noqa: PLR0913 -- what a request may carry, each by its name
        self,
        name: str,
        model: str | None = None,
        *,
        base_url: str | None,
        key: str | None = None,
        tools: Sequence[str] = (),
        json_mode: bool = False,
        max_tokens: int | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> None:
        httpx = http_library(f"openai:{name}")
        if not name:
            raise ConfigError("subject openai: names no model (openai:MODEL)")
        if base_url is None:
            raise ConfigError(f"subject openai:{name} needs --base-url, such as http://127.0.0.1:8000/v1")
        try:
            parts = urlsplit(base_url)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
            query = f"?{parts.query}" if parts.query else ""
            place = base_url.partition("?")[0].partition("#")[0].rstrip("/")
            self._url = httpx.URL(f"{place}/chat/completions{query}")  # taken apart once, not for every request
        except (ValueError, httpx.InvalidURL):
            good = False
        if not good:
            raise ConfigError("--base-url is not an http or https address, such as http://127.0.0.1:8000/v1")
        self._name, self.model = name, model or name
        self.base_url = public_url(base_url)
        self._loopback = _is_loopback(parts.hostname or "")
        self._key, self._tools = key, {tool.name: tool for tool in map(Tool, tools)}
        self._json_mode, self._max_tokens, self._json_schema = json_mode, max_tokens, json_schema
        self._clients: list[Any] = []
        self._idle: list[Any] = []

    def identity(self) -> dict[str, Any]:
        """Model, address without credentials, and everything that shapes the request."""
        return {
            "subject": f"openai:{self._name}",
            "base_url": self.base_url,
            "json_mode": self._json_mode,
            "max_tokens": self._max_tokens,
            "tools": [tool.identity() for tool in self._tools.values()],
        }

    def payload(self, request: Request) -> dict[str, Any]:
        """Only the picture: text reaches the model through the prompt."""
        return {"image": None if request.image is None else request.image.sha256}

    def check_modes(self, modes: tuple[bool, ...]) -> None:
        """With tools, there must be some."""
        if True in modes and not self._tools:
            needed = "needs --tool module:function; or give --modes no-tools"
            raise ConfigError(f"subject openai:{self._name} in mode tools {needed}")

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """A chat model sees pictures and forms answers itself."""
        for name in ("vision model", "structuring model"):
            if name.replace(" ", "_") in settings:
                flag = f"--{name.replace(' ', '-')}"
                raise ConfigError(f"subject openai:{self._name} has no {name} of its own; leave {flag} out")

    async def open(self, workers: int) -> None:
        """A client with one connection for each worker; proxies of the environment are not used for this machine itself.

        A pool looks at all its connections for every request, which at 64 costs several times the request itself.
        """
        httpx = http_library(self._name)
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        context = httpx.create_ssl_context()
        self._clients = [
            httpx.AsyncClient(
                headers=headers,
                timeout=None,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
                trust_env=not self._loopback,
                verify=context,
            )
            for _ in range(workers)
        ]
        self._idle = list(self._clients)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.aclose()

    async def ask(self, request: Request) -> Reply:
        """One chat over one connection."""
        client = self._idle.pop()
        try:
            return await self._chat(client, request)
        finally:
            self._idle.append(client)

    async def _chat(self, client: Any, request: Request) -> Reply:
        """While the model calls tools, they are run and their results sent, up to TOOL_ROUNDS or --max-iterations times."""
        messages = _messages(request)
        used: list[ToolUse] = []
        usage: dict[str, Any] = {}
        spent = 0.0
        rounds = int(request.settings.get("max_iterations", TOOL_ROUNDS))
        for _ in range(rounds + 1):
            start = time.perf_counter()
            completion = await self._post(client, self._body(request, messages))
            spent += time.perf_counter() - start
            _add_usage(usage, completion.usage)
            choice = completion.choices[0]
            calls = choice.message.tool_calls
            if not calls or not request.use_tools:
                return self._reply(request, completion, usage, used, spent)
            messages.append({"role": "assistant", **msgspec.to_builtins(choice.message)})
            for wanted in calls:
                text, use = await self._use(wanted)
                used.append(use)
                messages.append({"role": "tool", "tool_call_id": wanted.id, "content": text})
        raise Unanswered("invalid", f"the model still called tools after {rounds} rounds")

    async def _use(self, wanted: _ToolCall) -> tuple[str, ToolUse]:
        tool = self._tools.get(wanted.function.name)
        if tool is None:
            name = wanted.function.name
            return f"error: there is no tool {name!r}", ToolUse(tool=name, seconds=0.0, status="unknown")
        return await tool.use(wanted.function.arguments)

    def _reply(
        self, request: Request, completion: _Completion, usage: dict[str, Any], used: list[ToolUse], spent: float
    ) -> Reply:
        choice = completion.choices[0]
        if choice.message.refusal:
            raise Unanswered("refused", choice.message.refusal)
        if choice.finish_reason == "content_filter":
            raise Unanswered("refused", "the server's content filter withheld the answer")
        if choice.message.content is None:
            raise Unanswered("invalid", f"the answer has no text (finish_reason {choice.finish_reason!r})")
        served = completion.model or self._name
        reply = reply_of(_further_keys(completion.body))
        reply.response, reply.usage, reply.tool_details = choice.message.content, usage or None, used
        reply.finish_reason = choice.finish_reason
        reply.models = {"agent": served, **({} if request.image is None else {"vision": served}), **reply.models}
        reply.timings = {**reply.timings, "model_seconds": spent}
        if used:
            reply.timings["tool_seconds"] = sum(use.seconds for use in used)
        # Here they are the server's own: a completion was given, and its id is not the sample's.
        server_said = {"id": reply.id, "error": reply.error, "error_type": reply.error_type}
        reply.more |= {name: value for name, value in server_said.items() if value is not None}
        reply.id = reply.error = reply.error_type = None
        return reply

    def _body(self, request: Request, messages: list[dict[str, Any]]) -> bytes:
        form: dict[str, Any] | None = {"type": "json_object"} if self._json_mode else None
        if self._json_schema is not None:
            form = {"type": "json_schema", "json_schema": self._json_schema}
        body = {
            "model": self._name,
            "messages": messages,
            "temperature": request.temperature,
            "seed": request.seed,
            "max_tokens": self._max_tokens,
            "reasoning_effort": request.settings.get("reasoning_effort"),
            "response_format": form,
            "tools": [tool.definition for tool in self._tools.values()] if request.use_tools else None,
        }
        return msgspec.json.encode({name: value for name, value in body.items() if value is not None})

    async def _post(self, client: Any, body: bytes) -> _Completion:
        httpx = http_library(self._name)
        answer = bytearray()
        try:
            async with client.stream("POST", self._url, content=body) as response:
                async for chunk in response.aiter_bytes():
                    answer += chunk
                    if len(answer) > MAX_ANSWER:
                        raise Unanswered("invalid", f"the server sent more than {MAX_ANSWER} bytes")
        except httpx.TransportError as error:
            raise Unanswered("http", f"{type(error).__name__}: {error}", retry=True) from None
        except httpx.DecodingError as error:
            raise Unanswered("invalid", f"the body cannot be decompressed: {error}") from None
        status = response.status_code
        if status != httpx.codes.OK:
            body_start = bytes(answer[:_SHOWN]).decode("utf-8", "replace").strip()
            raise Unanswered(
                "http",
                f"the server answered with status {status}: {body_start}",
                retry=status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR,
                wait=retry_after(response.headers.get("retry-after")),
                status=status,
            )
        try:
            completion = _decode(answer)
            completion.body = msgspec.json.decode(answer)
        except (msgspec.DecodeError, RecursionError) as error:
            body_start = bytes(answer[:_SHOWN]).decode("utf-8", "replace")
            raise Unanswered("invalid", f"the body is no chat completion: {error}: {body_start!r}") from None
        if not completion.choices:
            raise Unanswered("invalid", "the chat completion has no choices")
        return completion


def _further_keys(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a server says beside the fields of a chat completion: of the body, and of the message itself."""
    message = body["choices"][0]["message"]
    of_message = {key: value for key, value in message.items() if key not in _OF_MESSAGE}
    return of_message | {key: value for key, value in body.items() if key not in _UNDERSTOOD}


def retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, given as a number or as a date; None where it says neither."""
    if value is None:
        return None
    text = value.strip()
    if text.replace(".", "", 1).isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _messages(request: Request) -> list[dict[str, Any]]:
    assert request.prompt is not None  # noqa: S101 -- `needs_prompt` holds the runner to it
    messages: list[dict[str, Any]] = []
    system = request.prompt.system_text
    if system:
        messages.append({"role": "system", "content": system})
    content: str | list[dict[str, Any]] = request.prompt.user
    if request.image is not None:
        picture = {"type": "image_url", "image_url": {"url": _image_url(request.image)}}
        content = [{"type": "text", "text": request.prompt.user}, picture]
    messages.append({"role": "user", "content": content})
    return messages


def _image_url(image: Image) -> str:
    if image.url is not None:
        return image.url
    if image.path is None:
        raise Unanswered("invalid", image.problem or "the picture has no file")
    path = image.path
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise Unanswered("invalid", f"the picture {path} cannot be read: {error.strerror}") from None
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _add_usage(total: dict[str, Any], more: dict[str, Any] | None) -> None:
    for name, count in (more or {}).items():
        if isinstance(count, int) and not isinstance(count, bool):
            total[name] = total.get(name, 0) + count
        else:
            total[name] = count


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
