"""From a document to a typed rule file: every mistake is a ConfigError with its line, the word and a suggestion."""

from __future__ import annotations

import math
import re
from typing import Any

from adjudge.evidence.rule import Limits
from adjudge.protocols.check.declarations import FieldType, Path, parse_path, parse_type
from adjudge.protocols.check.document import Document, Part, is_number, near, shown
from adjudge.protocols.check.names import RESERVED
from adjudge.protocols.check.rulefile import Field, RuleFile, RuleText, SelfTest
from adjudge.protocols.check.schema import assertions
from adjudge.verdict.gates import Gate

FORMAT = 1
KEYS = (
    "adjudge", "name", "about", "extract", "fields", "schema", "meta", "input", "rules", "scores", "gates", "slices",
    "cluster", "sequence", "order", "tests",
)  # fmt: skip
FIELD_KEYS = (
    "path", "type", "unit", "required", "lenient", "one_of", "range", "pattern", "severity", "places", "title",
)  # fmt: skip
RULE_KEYS = (
    "check", "observed", "when", "severity", "signed", "title", "passed", "failed", "unit", "needs", "optional",
)  # fmt: skip
TEST_KEYS = ("name", "row", "gold", "meta", "input", "previous", "fails", "not_applicable")
FAMILIES = ("answer", "field", "place", "schema")
"""Families of rules that are ours."""
PLACES, MOST_PLACES = 8, 100
_CODE = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_HOLES = ("observed", "unit", "low", "high", "critical_low", "critical_high", "field")


def rule_file(document: Document) -> RuleFile:
    """The typed rule file of a document."""
    return _Reader(document).read()


class _Reader:
    """Reads one document, part by part; fields, schema and rules are known to the parts after them."""

    def __init__(self, document: Document) -> None:
        self.file = Part(document, (), document.content)

    def read(self) -> RuleFile:
        file = self.file
        file.known(KEYS)
        if "adjudge" not in file:
            raise file.wrong(f"`adjudge: {FORMAT}` is missing; it is the version of the file format")
        if file["adjudge"].value != FORMAT:
            raise file["adjudge"].wrong(f"is {file['adjudge'].value!r}; this version reads format {FORMAT}")
        extract = file["extract"].choice("json", "none")
        self.fields = {name: _field(name, part) for name, part in file["fields"].table().items()}
        blocks = {
            block: {key: part.parsed(parse_type) for key, part in file[block].table().items()}
            for block in ("meta", "input")
        }
        self.schema = assertions(file.document)
        self.rules = {code: self._rule(code, part) for code, part in file["rules"].table().items()}
        self.named = [*self.rules, *dict.fromkeys(each.code for each in self.schema)]
        for code, rule in self.rules.items():
            for place, name in enumerate(rule.needs):
                if name not in {known for other in self.named for known in (other, _family(other))}:
                    raise file["rules"][code]["needs"][place].wrong(self._no_rule(name, _OF_ITSELF))
        if not self.fields:
            raise file.wrong("`fields` is missing or empty; a field is `total: {path: $.total, type: number}`")
        sequence, order = self._source("sequence"), self._source("order")
        if bool(sequence) != bool(order):
            one, other = ("sequence", "order") if sequence else ("order", "sequence")
            raise file[one].wrong(f"goes with `{other}`, which is missing")
        return RuleFile(
            document=file.document,
            name=file["name"].text("rules"),
            extract=extract,
            fields=self.fields,
            blocks=blocks,
            rules=self.rules,
            schema=self.schema,
            scores={name: self._score(name, part) for name, part in file["scores"].table().items()},
            gates=tuple(part.parsed(Gate.parse) for part in file["gates"].items()),
            slices=tuple(self._label(part) for part in file["slices"].items()),
            cluster=self._source("cluster"),
            sequence=sequence,
            order=order,
            tests=tuple(self._test(place, part) for place, part in enumerate(file["tests"].items())),
        )

    def _rule(self, code: str, part: Part) -> RuleText:
        if not _CODE.fullmatch(code):
            hint = f"; for example {_as_code(code)}" if _as_code(code) else ""
            raise part.misnamed(f"a rule is called family.name in lower case, such as invoice.sum{hint}")
        if _family(code) in FAMILIES:
            raise part.misnamed(f"the family {_family(code)!r} is ours; choose another name before the dot")
        rule = _long_form(part, "check", "a rule is an expression, or a table with `check`")
        rule.known(RULE_KEYS)
        severity = _severity(rule["severity"])
        check, observed = _expression(rule["check"]), _expression(rule["observed"])
        if not isinstance(severity, str) and not observed:
            raise rule["severity"].wrong("are limits on `observed`, which is missing")
        if not check and isinstance(severity, str):
            raise rule.wrong("`check` is missing: an expression that is true where the rule holds")
        optional = rule["optional"].words()
        for place, name in enumerate(optional):
            if name not in self.fields:
                raise rule["optional"][place].wrong(f"there is no field {name!r}{near(name, self.fields)}")
        return RuleText(
            code=code,
            check=check,
            observed=observed,
            when=_expression(rule["when"]),
            severity=_limits(severity, signed=rule["signed"].truth(False)),
            title=rule["title"].text(""),
            passed=_template(rule["passed"]),
            failed=_template(rule["failed"]),
            unit=rule["unit"].text() if "unit" in rule else None,
            needs=rule["needs"].words(),
            optional=optional,
        )

    def _no_rule(self, code: str, ours: str) -> str:
        """Why a name is none of a rule that can be named here; `ours` is what to do where it is a check of fields."""
        if _family(code) in FAMILIES and _family(code) != "schema":
            return f"{code!r} checks fields; {ours}"
        return f"there is no rule {code!r}{near(code, self.named)}" + ("" if self.named else "; `rules` is empty")

    def _score(self, name: str, part: Part) -> dict[str, float]:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise part.misnamed("a score is called by one word in lower case")
        weights = part.value.get("weights") if isinstance(part.value, dict) else None
        if not isinstance(weights, dict) or not weights:
            raise part.wrong("a score is {weights: {RULE: WEIGHT}}")
        part.known(("weights", "title"))
        for code, weight in weights.items():
            at = part["weights"][code]
            if code not in self.named:
                raise at.misnamed(self._no_rule(code, _UNWEIGHED))
            if not is_number(weight) or weight <= 0:
                raise at.wrong(f"is {shown(weight)}, expected a positive weight")
        return {code: float(weight) for code, weight in weights.items()}

    def _test(self, place: int, part: Part) -> SelfTest:
        if not isinstance(part.value, dict) or not isinstance(part.value.get("row"), dict):
            raise part.wrong("a self-test is {row: {FIELD: VALUE}, fails: [RULE]}")
        part.known(TEST_KEYS)
        blocks: dict[str, Any] = {}
        for block in ("row", "gold", "previous", "meta", "input"):
            blocks[block] = {key: each.value for key, each in part[block].table().items()}
            more = {str(each.steps[0]) for each in self.schema if each.steps} if block == "row" else set()
            if block not in {"meta", "input"} and blocks[block]:
                part[block].known((*self.fields, *sorted(more - set(self.fields))), "field")
        codes = (*self.named, *_OURS)
        for key in ("fails", "not_applicable"):
            blocks[key] = part[key].words()
            for index, code in enumerate(blocks[key]):
                if code not in codes:
                    raise part[key][index].wrong(f"there is no rule {code!r}{near(code, codes)}")
        return SelfTest(place + 1, part["name"].text(""), **blocks)

    def _source(self, key: str) -> str:
        return "" if self.file[key].empty else self._label(self.file[key])

    def _label(self, part: Part) -> str:
        """A slice, cluster, sequence or order: meta.KEY, input.KEY, a field, `id`."""
        text = part.text()
        block, dot, key = text.partition(".")
        if text in self.fields or text == "id":
            return text
        if dot and key and block in {"meta", "input"}:
            declared = self.file[block].value if block in self.file else None
            if declared and key not in declared:
                raise part.wrong(f"is {text!r}, and `{block}` declares no {key!r}{near(key, declared)}")
            return text
        known = [*self.fields, "meta.KEY", "input.KEY"]
        raise part.wrong(f"is {text!r}, expected meta.KEY, input.KEY or a field{near(text, known)}")


def _long_form(part: Part, key: str, expected: str) -> Part:
    """A field or a rule as a table, whose short form is the text of one key."""
    if isinstance(part.value, str):
        return Part(part.document, part.way, {key: part.value})
    if not isinstance(part.value, dict):
        raise part.wrong(f"is {shown(part.value)}; {expected}")
    return part


def _field(name: str, part: Part) -> Field:
    if name in RESERVED:
        words = ", ".join(RESERVED)
        raise part.misnamed(f"{name!r} is a reserved name ({words}); call the field otherwise, its `path` stays")
    if not name:
        raise part.misnamed("a field has no name")
    field = _long_form(part, "type", "a field is a type, or a table such as {path: $.total, type: number}")
    field.known(FIELD_KEYS)
    if "type" not in field:
        raise field.wrong("`type` is missing: number, text, boolean, date, list(…) or object(…)")
    kind = field["type"].parsed(parse_type)
    path = field["path"].parsed(parse_path) if "path" in field else Path((name,))
    if path.many and kind.kind in {"list", "object", "json"}:
        raise field["type"].wrong(f"is {kind}; a path into a list ([*]) leads to number, text, boolean or date")
    if "places" in field and not path.many:
        raise field["places"].wrong("is for a path into a list, such as $.lines[*].qty")
    places = field["places"].whole(PLACES, 1, MOST_PLACES) if path.many else 0
    return Field(
        name=name,
        path=path,
        type=kind,
        unit=field["unit"].text(""),
        required=field["required"].truth(True),
        lenient=_lenient(field["lenient"], kind),
        one_of=_one_of(field["one_of"], kind),
        range=_range(field["range"], kind),
        pattern=_pattern(field["pattern"], kind),
        severity=field["severity"].choice("critical", "warning"),
        places=places,
        title=field["title"].text(""),
    )


def _lenient(part: Part, kind: FieldType) -> bool:
    lenient = part.truth(False)
    if lenient and kind.kind not in {"number", "boolean", "date"}:
        raise part.wrong(f"is for number, boolean and date: values in quotes; {kind} has none to accept")
    return lenient


def _one_of(part: Part, kind: FieldType) -> tuple[Any, ...]:
    if part.empty:
        return ()
    if not isinstance(part.value, list) or not part.value:
        raise part.wrong(f"is {shown(part.value)}; expected a list such as [EUR, USD]")
    kinds: dict[str, Any] = {"number": (int, float), "text": str, "boolean": bool}
    expected = kinds.get(kind.kind)
    if expected is None:
        raise part.wrong(f"is for number, text and boolean, not for {kind}; write a rule")
    for place, item in enumerate(part.value):
        if not isinstance(item, expected) or (isinstance(item, bool) and kind.kind != "boolean"):
            hint = "; quote it" if kind.kind == "text" else ""
            raise part[place].wrong(f"is {shown(item)}, which is no {kind.kind}{hint}")
    return tuple(float(item) if kind.kind == "number" else item for item in part.value)


def _range(part: Part, kind: FieldType) -> Limits | None:
    if part.empty:
        return None
    if kind.kind != "number":
        raise part.wrong(f"is for numbers, and the field is {kind}; write a rule, or `type: number`")
    if not isinstance(part.value, dict):
        bounds = _bounds(part, part.value)
        return Limits(*bounds, *bounds)
    part.known(("warning", "critical"))
    outer = _bounds(part["critical"], part.value.get("critical", [None, None]))
    inner = _bounds(part["warning"], part.value.get("warning", part.value.get("critical")))
    return Limits(*inner, *outer)


def _bounds(part: Part, value: Any) -> tuple[float, float]:
    wrong = not isinstance(value, list) or len(value) != 2
    if wrong or not all(item is None or is_number(item) for item in value):
        raise part.wrong(f"is {shown(value)}; expected [low, high], null for no bound")
    low = -math.inf if value[0] is None else float(value[0])
    high = math.inf if value[1] is None else float(value[1])
    if low > high:
        raise part.wrong(f"low {low:g} is above high {high:g}; write [low, high]")
    return low, high


def _pattern(part: Part, kind: FieldType) -> str:
    if part.empty:
        return ""
    if kind.kind != "text":
        raise part.wrong(f"is for text, and the field is {kind}")
    return part.text()


def _severity(part: Part) -> str | tuple[float | None, float | None]:
    if not isinstance(part.value, dict):
        return part.choice("critical", "warning")
    part.known(("warning", "critical"))
    limits: list[float | None] = []
    for key in ("warning", "critical"):
        limit = part.value.get(key)
        if limit is not None and not is_number(limit):
            raise part[key].wrong(f"is {shown(limit)}, expected a number, a limit on `observed`")
        limits.append(None if limit is None else float(limit))
    warning, critical = limits
    if warning is None and critical is None:
        raise part.wrong("has neither `warning` nor `critical`")
    if warning is not None and critical is not None and critical < warning:
        raise part["critical"].wrong(f"is {critical:g}, under the warning limit {warning:g}")
    return warning, critical


def _limits(severity: str | tuple[float | None, float | None], *, signed: bool) -> str | Limits:
    """Limits on what a rule observes: on both sides of zero, unless its sign counts; a word is left."""
    if isinstance(severity, str):
        return severity
    warning, critical = severity
    first = critical if warning is None else warning
    if signed or first is None:
        return Limits(high=first, critical_high=critical)
    return Limits(-first, first, None if critical is None else -critical, critical)


def _expression(part: Part) -> str:
    if part.empty:
        return ""
    if isinstance(part.value, bool | int | float):
        raise part.wrong(f"is the constant {shown(part.value)}, which says nothing about an answer")
    return part.text()


def _template(part: Part) -> str:
    """A message with holes such as {observed}; anything else in braces is refused."""
    text = part.text("")
    bare = text.replace("{{", "").replace("}}", "")
    for hole in re.findall(r"\{([^{}]*)\}", bare):
        if hole not in _HOLES:
            known = ", ".join(_HOLES)
            raise part.wrong(f"{{{hole}}} is no part of a message{near(hole, _HOLES)}; these are: {known}")
    rest = re.sub(r"\{[^{}]*\}", "", bare)
    if "{" in rest or "}" in rest:
        raise part.wrong("has a brace that is not closed; write {{ for a brace")
    return text


_OF_ITSELF = "a rule needs its fields to be there and of their types by itself; write what else it needs as `when`"
_UNWEIGHED = "it has no weight of its own, but a rule whose fields are missing or mistyped counts as failed in a score"
_OURS = (
    *("answer.json", "place.present", "place.type", "place.value"),
    *("field.present", "field.type", "field.one_of", "field.range", "field.pattern"),
)


def _family(code: str) -> str:
    return code.partition(".")[0]


def _as_code(text: str) -> str:
    words = [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word]
    if not words or not words[0][0].isalpha():
        return ""
    return f"{words[0]}.{'_'.join(words[1:])}" if len(words) > 1 and words[1][0].isalpha() else f"rule.{words[0]}"
