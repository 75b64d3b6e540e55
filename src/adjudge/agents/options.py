"""How an evaluator agent that is asked over a wire is reached, and what it may cost."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from adjudge.errors import ConfigError

LEAST_KAPPA = 0.6


class AgentOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where the judge is, how often and how patiently it is asked, and the most that may be spent."""

    url: str | None = None
    votes: int = 1
    concurrency: int = 6
    timeout: float = 60.0
    retries: int = 3
    cache: str | None = None
    key_env: str = "OPENAI_API_KEY"
    max_samples: int | None = None
    max_tokens: int | None = None
    price: list[float] | None = None
    """Of a million prompt tokens and a million completion tokens."""
    validation: str | None = None
    """A validation of the same judge, without which no gate is held."""
    min_kappa: float = LEAST_KAPPA

    def check(self) -> None:
        """Refuse what cannot be, and an address that carries a secret."""
        for name, least in (("votes", 1), ("concurrency", 1), ("retries", 0), ("max_samples", 1), ("max_tokens", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} of the agent is {value}, expected {least} or more")
        if not self.timeout > 0:
            raise ConfigError(f"timeout of the agent is {self.timeout}, expected a number of seconds above 0")
        if self.price is not None and len(self.price) != 2:
            raise ConfigError("price of the agent is two numbers: of a million prompt and a million completion tokens")
        try:
            parts = urlsplit(self.url or "")
            secret = parts.username is not None or parts.password is not None or bool(parts.query)
        except ValueError:
            raise ConfigError("the agent's url is not an http or https address") from None
        if secret:
            raise ConfigError(
                "the agent's url carries a user, a password or a query, which a run would keep; "
                f"put the key into the environment variable {self.key_env}"
            )
