"""Names that expressions may use, checked expressions, and why one is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.protocols.check.hints import quoted


class Refused(Exception):
    """An expression that is not allowed or not right: what is wrong, the word, and the character where it stands."""

    def __init__(self, what: str, word: str = "", at: int | None = None) -> None:
        super().__init__(what)
        self.what, self.word, self.at = what, word, at

    def __str__(self) -> str:
        return self.what + ("" if self.at is None else f" (at character {self.at + 1})")


@dataclass(frozen=True)
class Name:
    """One name that an expression may use: how it is written, its internal column, and its type in DuckDB and ours."""

    written: tuple[str, ...]
    column: str
    sql: str
    kind: str

    @property
    def text(self) -> str:
        """The name as the author writes it."""
        return ".".join(quoted(part) for part in self.written)


@dataclass(frozen=True)
class Expression:
    """A checked expression: its SQL over internal columns, and the names it uses, in the order of the file."""

    sql: str
    uses: tuple[tuple[str, ...], ...]


@dataclass
class Names:
    """Every name that expressions of a rule file may use.

    `open` are the blocks (`meta`, `input`) whose keys are not declared: any key of theirs is a text.
    """

    known: dict[tuple[str, ...], Name]
    open: set[str] = field(default_factory=set)

    def of_block(self, block: str, key: str) -> Name | None:
        """A key of `meta` or `input`; one that is not declared becomes known where keys need no declaration."""
        if (block, key) not in self.known and block in self.open:
            place = sum(written[0] == block for written in self.known)
            self.known[(block, key)] = Name((block, key), f"{block[0]}{place}", "VARCHAR", "text")
        return self.known.get((block, key))

    def columns(self) -> list[tuple[str, str]]:
        """(internal column, type) of all."""
        return [(name.column, name.sql) for name in self.known.values()]
