"""What the records of a configuration say about the system that made them, and whether they all say the same.

Every key of `models`, `prompt_hashes` and `run_config` is a fact, named `models.vision`, `run_config.temperature` and so on. A
factor is what a comparison may vary: `model`, `tools`, `vision`, `structuring`, `prompt`, `temperature` or any other key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from adjudge.errors import InputError
from adjudge.protocols.triage.counts import Configuration
from adjudge.provenance.canonical import canonical

Values = Counter[str]
"""How many records carry each value of a fact, the value as JSON."""

# Not of the system but of how it was asked: the data are held by their content, the rest reaches no answer.
_NOT_OF_THE_SYSTEM = frozenset({"run_config.workers", "run_config.adjudge", "run_config.dataset_sha256"})
# A collection that goes on after a break may be more patient than it began.
_MAY_CHANGE = frozenset({"run_config.timeout_seconds", "run_config.retries"})
_FACTORS = {
    "models.agent": "model",
    "models": "model",
    "run_config.model": "model",
    "run_config.subject": "model",
    "run_config.subject_sha256": "model",
    "run_config.base_url": "model",
    "run_config.tools": "tools",
    "run_config.prompt_sha256": "prompt",
}
_SHOWN = 4


def factor_of(fact: str) -> str:
    """The factor that a fact belongs to."""
    return "prompt" if fact.startswith("prompt_hashes") else _FACTORS.get(fact) or fact.partition(".")[2] or fact


def recorded(configuration: Configuration) -> dict[str, Values]:
    """Every fact but the prompts, with its values."""
    facts = _counted(models=configuration.models, run_config=configuration.run_configs)
    return {fact: values for fact, values in facts.items() if fact not in _NOT_OF_THE_SYSTEM}


def factors(name: str, configuration: Configuration, *, split: bool) -> dict[str, dict[str, Any]]:
    """The facts of one configuration by factor; the configuration is named `<model>|tools` or `<model>|no-tools`."""
    model, _, mode = name.rpartition("|")
    model = model.rpartition(" [")[0] if split else model
    by_factor: dict[str, dict[str, Any]] = {"model": {"model": model}, "tools": {"use_tools": mode == "tools"}}
    for fact, values in recorded(configuration).items():
        plain = [msgspec.json.decode(value) for value in sorted(values)]
        by_factor.setdefault(factor_of(fact), {})[fact] = plain[0] if len(plain) == 1 else plain
    return by_factor


def refuse_mixtures(name: str, configuration: Configuration, samples: int) -> None:
    """One configuration is one system: two values of a fact among its records are an InputError that names them.

    Runs of version 1 do not store `run_config` and are not held to it.
    """
    if not configuration.run_configs:
        return
    facts = recorded(configuration)
    mixed = {fact: values for fact, values in facts.items() if len(values) > 1 and fact not in _MAY_CHANGE}
    if len(facts.get("run_config.prompt_sha256", ())) != 1:  # prompts of one template may differ from sample to sample
        mixed |= {
            fact: values
            for fact, values in _counted(prompt_hashes=configuration.prompts).items()
            if 1 < len(values) <= max(2, samples // 2) and len(values) < samples
        }
    if not mixed:
        return
    listed = "; ".join(f"{fact}: {_listed(values)}" for fact, values in mixed.items())
    raise InputError(
        f"{name} mixes records of several systems, which are never pooled: {listed}.",
        hint=f"--split-by {next(iter(mixed))} judges each as a configuration of its own.",
    )


def changed(configuration: Configuration) -> Iterator[str]:
    """Notes on settings that changed in the middle of a collection."""
    for fact, values in recorded(configuration).items():
        if len(values) > 1 and fact in _MAY_CHANGE:
            yield f"{fact} changed in the middle: {_listed(values)}"


def _counted(**sources: Counter[str | None]) -> dict[str, Values]:
    """The facts in the texts of each source; a value that is no object, and a hash alone, is one fact."""
    facts: dict[str, Values] = {}
    for source, texts in sources.items():
        for text, count in texts.items():
            try:
                content = {} if text is None else msgspec.json.decode(text)
            except msgspec.DecodeError:
                content = text
            is_object = isinstance(content, dict)
            for key, value in content.items() if is_object else [("", content)]:
                fact = f"{source}.{key}" if is_object else source
                facts.setdefault(fact, Counter())[canonical(value).decode()] += count
    return dict(sorted(facts.items()))


def _listed(values: Values) -> str:
    order = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{value[:60]} ({count:,} records)" for value, count in order[:_SHOWN]]
    return ", ".join(words) + (f" and {len(order) - _SHOWN} more" if len(order) > _SHOWN else "")
