"""Which action types point, carry a text, a key or a direction, or ask for nothing."""

from __future__ import annotations

POINTING = ("click", "double_click", "right_click", "hover")
DRAG = ("drag",)
WITH_TEXT = ("type", "select", "click_and_type")
WITH_OPTIONAL_TEXT = ("open", "answer", "open_app", "close_app", "goto")
WITH_KEY = ("key", "hotkey", "scroll")
ON_ELEMENT = (*POINTING, *DRAG, "type", "select")
NOTHING = ("wait", "done")  # what an agent that never acts gets right


def same_key(word: str | None) -> str | None:
    """A key or direction as it is compared: case and blanks do not matter."""
    return None if word is None else "".join(word.split()).casefold()


def one_space(text: str | None) -> str | None:
    """A text with every run of white space as one blank and none at the ends."""
    return None if text is None else " ".join(text.split())
