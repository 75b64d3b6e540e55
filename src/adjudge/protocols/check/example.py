"""Example data of the check protocol: invoices read by three invented models, and the tool calls of three agents."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from adjudge.errors import ConfigError
from adjudge.protocols.common.examples import write_examples
from adjudge.runs.tables import write_whole

KINDS = ("invoices", "tool_calls", "flight_s1")
DOCUMENTS, PAGES = 60, 3
_VENDORS = ("Nordwind Papier", "Kestrel Tools", "Halden Foods", "Blue Harbour Freight")
_MODELS = {"ledger-large": 0.03, "ledger-small": 0.10, "ledger-draft": 0.28}
_AGENTS = {"desk-careful": 0.04, "desk-quick": 0.15, "desk-eager": 0.32}
_INTENTS = ("where is my order", "money back", "write to the seller", "a person, please")
_TOOLS = ("search_orders", "refund", "send_mail", "escalate")


def rule_text(kind: str) -> str:
    """An example rule file."""
    if kind not in KINDS:
        raise ConfigError(f"there is no example {kind!r}; there are {', '.join(KINDS)}")
    return (files("adjudge.protocols.check") / "examples" / f"{kind}.yaml").read_text(encoding="utf-8")


def generate(folder: Path, *, seed: int, kind: str = "invoices", force: bool = False) -> dict[str, Any]:
    """Write a rule file, outputs and a reference, and return the configuration that judges them."""
    if kind not in {"invoices", "tool_calls"}:
        raise ConfigError(f"there is no example data {kind!r}; there are invoices, tool_calls")
    make, models = (_invoices, _MODELS) if kind == "invoices" else (_calls, _AGENTS)
    cases = list(make(np.random.default_rng([seed, 1])))
    tables: dict[str, Any] = {
        f"outputs_{model}.jsonl": _outputs(model, share, cases, np.random.default_rng([seed, 2, place]), kind)
        for place, (model, share) in enumerate(models.items())
    }
    paths = write_examples(folder, {**tables, "reference.jsonl": [case["reference"] for case in cases]}, force=force)
    rules = folder / f"{kind}.yaml"
    write_whole(rules, rule_text(kind).encode())
    return {"outputs": [str(path) for path in paths[:-1]], "reference": [str(paths[-1])], "rule_file": str(rules)}


def example(folder: Path, seed: int) -> dict[str, Any]:
    """Write the data set and return the configuration of the demo."""
    return generate(folder, seed=seed, force=True)


def _invoices(random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Invoices: a document has several pages, each with an invoice of its own."""
    for document in range(DOCUMENTS):
        vendor = _VENDORS[document % len(_VENDORS)]
        for page in range(PAGES):
            lines: list[dict[str, Any]] = [
                {"sku": f"{vendor[:2].upper()}-{random.integers(100, 999)}", "qty": int(random.integers(1, 9)),
                 "price": round(float(random.uniform(2, 180)), 2)}
                for _ in range(int(random.integers(1, 5)))
            ]  # fmt: skip
            net = round(sum(line["qty"] * line["price"] for line in lines), 2)
            tax = round(0.19 * net, 2)
            date = dt.date(2026, 1, 1) + dt.timedelta(days=int(random.integers(0, 200)))
            answer = {
                "number": f"INV-{document * PAGES + page + 1:06d}",
                "total": round(net + tax, 2),
                "tax": tax,
                "currency": ("EUR", "EUR", "CHF", "USD")[int(random.integers(0, 4))],
                "date": date.isoformat(),
                "due": (date + dt.timedelta(days=30)).isoformat(),
                "lines": lines,
            }
            received = date + dt.timedelta(days=int(random.integers(1, 9)))
            name = f"doc{document:03d}-{page}"
            meta = {"vendor": vendor, "document": f"doc{document:03d}", "received": received.isoformat()}
            yield {"answer": answer, "reference": {"id": name, "gold": answer, "meta": meta}}


def _calls(random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Cases of a help desk, each with the call that it needs."""
    for case in range(DOCUMENTS * PAGES):
        place = int(random.integers(0, 4))
        tool, order = _TOOLS[place], f"O-{random.integers(10_000, 99_999)}"
        paid = round(float(random.uniform(5, 300)), 2)
        choices: dict[str, dict[str, Any]] = {
            "search_orders": {"order_id": order},
            "refund": {"order_id": order, "amount": paid, "currency": "EUR"},
            "send_mail": {"to": "seller@example.org", "subject": f"About {order}"},
            "escalate": {"reason": f"the customer of {order} asks for a person"},
        }
        answer = {"tool": tool, "arguments": choices[tool], "tags": [("order", "money", "mail", "human")[place]]}
        arguments = {"intent": _INTENTS[place], "order_id": order, "paid": paid}
        yield {"answer": answer, "reference": {"id": f"case{case:04d}", "gold": {"tool": tool}, "input": arguments}}


def _outputs(
    model: str, share: float, cases: list[dict[str, Any]], random: np.random.Generator, kind: str
) -> Iterator[dict[str, Any]]:
    """The answers of a model that makes a mistake in about this share of them."""
    for case in cases:
        answer = msgspec.json.decode(msgspec.json.encode(case["answer"]))
        if random.random() < share:
            (_spoil_invoice if kind == "invoices" else _spoil_call)(answer, random)
        text = msgspec.json.encode(answer).decode()
        way = random.random()
        if way < 0.2:
            text = f"Here is the result:\n```json\n{text}\n```"
        elif way > 1 - share / 8:
            text = text[: len(text) // 2]
        yield {"id": case["reference"]["id"], "model": model, "response": text}


def _spoil_invoice(answer: dict[str, Any], random: np.random.Generator) -> None:
    """One of the mistakes that readers of documents make."""
    match int(random.integers(0, 8)):
        case 0:
            answer["total"] = round(answer["total"] + 10.0 * float(random.integers(1, 9)), 2)
        case 1:
            answer["total"] = f"{answer['total']:.2f}".replace(".", ",")
        case 2:
            del answer["tax"]
        case 3:
            answer["currency"] = "EURO"
        case 4:
            answer["date"], answer["due"] = answer["due"], answer["date"]
        case 5:
            answer["lines"] = answer["lines"][:-1]
        case 6:
            answer["number"] = answer["number"].replace("INV-", "INV ")
        case _:
            answer["tax"] = round(answer["tax"] * 1.5, 2)


def _spoil_call(answer: dict[str, Any], random: np.random.Generator) -> None:
    """One of the mistakes that callers of tools make."""
    arguments = answer["arguments"]
    match int(random.integers(0, 5)):
        case 0:
            answer["tool"] = "issue_refund"
        case 1 if "amount" in arguments:
            arguments["amount"] = arguments["amount"] + 50
        case 2 if "order_id" in arguments:
            arguments["order_id"] = "O-00000"
        case 3:
            answer["tags"] = ["order", "urgent"]
        case _:
            arguments.clear()
