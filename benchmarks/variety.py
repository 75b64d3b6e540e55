"""What makes generated records differ as real ones do: ids, texts, escapes, blanks, the order of keys, keys that are absent."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping
from typing import Any

import msgspec

_IDS = (
    "{0}",
    "q-{0:05d}",
    "Straße {0}",
    "2024/11/{0:x}",
    "問題{0}",
    'the "{0}"th',
    "frame_{0:012d}.png",
    "C:\\img\\{0}",
    "👩‍🚀-{0}",
)
_TEXT = (
    "the a of and in to is with no light shadow edge texture source section clause limit policy answer question climb "
    "heading plausible consistent unusual smooth warranty shipping camera depth Größe naïve façade año šum ответ пример "
    "Ελλάδα 東京 説明 한국어 🙂 🛫 ½ µm → “quoted” it’s — 3.14 1e-5 {x} [y] C:\\temp"
)
_ENDINGS = (".", "…", ' "so to say".', "\n", "\n\n- first\n- second\t(tab)", " </p>", "\\", " \u2028next")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class Variety:
    """Seeded choices; the same seed writes the same bytes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- benchmark data
        self._texts = [self._text() for _ in range(3000)]
        self._orders = {n: [self.random.sample(range(n), n) for _ in range(24)] for n in range(1, 25)}

    def identifier(self, number: int) -> str:
        """An id that no other number gets: of one to forty characters, from several alphabets, now and then a digest."""
        style = self.random.randrange(len(_IDS) + 3)
        if style < len(_IDS):
            return _IDS[style].format(number)
        digest = hashlib.sha256(b"%d" % number).hexdigest()
        return digest[: 40 if style == len(_IDS) else 24]

    def text(self) -> str:
        """Some words of several languages."""
        return self.random.choice(self._texts)

    def ordered(self, items: Mapping[str, Any]) -> dict[str, Any]:
        """The same keys, in one of four records in another order."""
        if self.random.random() < 0.75:
            return dict(items)
        pairs = list(items.items())
        return dict([pairs[place] for place in self.random.choice(self._orders[len(pairs)])])

    def record(self, required: Mapping[str, Any], optional: Mapping[str, Any], share: float = 0.7) -> dict[str, Any]:
        """A record that has each optional key with probability `share`, its keys `ordered`."""
        chance = self.random.random
        return self.ordered({**required, **{key: value for key, value in optional.items() if chance() < share}})

    def line(self, record: Mapping[str, Any]) -> bytes:
        """A line of JSON, with or without blanks, its other letters as they are or escaped."""
        data = msgspec.json.encode(record)
        style = self.random.randrange(4)
        if style & 1:
            data = msgspec.json.format(data, indent=0)
        if style & 2 and not data.isascii():
            data = _NOT_ASCII.sub(_escaped, data.decode()).encode()
        return data + b"\n"

    def _text(self) -> str:
        words = self.random.choices(_TEXT.split(), k=self.random.randint(3, 30))
        return " ".join(words) + self.random.choice(_ENDINGS)


def _escaped(letter: re.Match[str]) -> str:
    units = letter[0].encode("utf-16-be")
    return "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))
