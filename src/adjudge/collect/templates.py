"""Prompts from Jinja2 templates, rendered in a sandbox.

A template with `{% block user %}` and, if it likes, `{% block system %}` gives the two messages; without blocks the
whole text is the user's. `{% block tools %}` is added to the system message in mode tools alone and hashed apart, so that
the other two stay the same in both modes. A template sees the fields of the sample (never `label` or `meta`) by name and as
`sample`, and `use_tools`. A name that is not there is an error, not an empty text.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.collect.subject import Prompt
from adjudge.errors import ConfigError

if TYPE_CHECKING:
    import jinja2

ASKED_FOR = ("prompt", "question", "text")
"""Where the question stands in a sample when no template is given; the first of these that is a text."""


class Template:
    """One prompt template; `sha256` is of its source."""

    def __init__(self, source: str, name: str) -> None:
        import jinja2
        from jinja2.sandbox import SandboxedEnvironment

        environment = SandboxedEnvironment(
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # a prompt is text for a model, not a page
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.name = name
        self.sha256 = hashlib.sha256(source.encode()).hexdigest()
        try:
            self._template: jinja2.Template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise ConfigError(f"prompt {name}:{error.lineno}: {error.message}") from None
        blocks = set(self._template.blocks)
        if blocks and "user" not in blocks:
            raise ConfigError(f"prompt {name} has the blocks {', '.join(sorted(blocks))}, but no block `user`")

    def render(self, sample: dict[str, Any], *, use_tools: bool) -> Prompt:
        """The prompt of one sample; ConfigError where the template asks for what the sample has not."""
        import jinja2

        try:
            context = self._template.new_context({**sample, "sample": sample, "use_tools": use_tools})
            blocks = self._template.blocks
            if not blocks:
                return Prompt(user="".join(self._template.root_render_func(context)).strip())
            wanted = ("system", "user", *(("tools",) if use_tools else ()))
            texts = {name: "".join(blocks[name](context)).strip() for name in wanted if name in blocks}
        except jinja2.TemplateError as error:
            raise ConfigError(f"prompt {self.name}: {error.message}") from None
        except (TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise ConfigError(f"prompt {self.name}: {type(error).__name__}: {error}") from None
        return Prompt(user=texts["user"], system=texts.get("system") or None, tools=texts.get("tools") or None)


def template_file(path: Path) -> Template:
    """The template in a file."""
    try:
        return Template(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(f"prompt {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"prompt {path} is not UTF-8") from None


def shipped_template(package: str, name: str) -> Template | None:
    """The template `prompts/NAME.j2` of a package, or None."""
    place = resources.files(package) / "prompts" / f"{name}.j2"
    return Template(place.read_text(encoding="utf-8"), name) if place.is_file() else None


def plain_prompt(sample: dict[str, Any]) -> Prompt | None:
    """The question that stands in the sample itself."""
    text = next((sample[field] for field in ASKED_FOR if isinstance(sample.get(field), str)), None)
    return None if text is None else Prompt(user=text)


def prompt_hashes(prompt: Prompt | None) -> dict[str, str | None]:
    """SHA-256 of the system and the user prompt, null where there is none, and of what mode tools adds, if anything."""
    system, user, tools = (None, None, None) if prompt is None else (prompt.system, prompt.user, prompt.tools)
    texts = {"system": system, "user": user, **({} if tools is None else {"tools": tools})}
    return {name: None if text is None else hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
