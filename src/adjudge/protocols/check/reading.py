"""From a document to a typed rule file: every mistake is a ConfigError with its line, the word and a suggestion."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from adjudge.errors import ConfigError
from adjudge.protocols.check.document import Document, Way
from adjudge.protocols.check.hints import RESERVED
from adjudge.protocols.check.parts import Parts, is_number, near, shown
from adjudge.protocols.check.paths import Path, parse_path
from adjudge.protocols.check.rulefile import Field, Limits, Range, RuleFile, RuleText, SelfTest
from adjudge.protocols.check.schema import assertions
from adjudge.protocols.check.types import FieldType, parse_type
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


class _Reader(Parts):
    """Reads one document, part by part."""

    def read(self) -> RuleFile:
        self.known(self.content, KEYS, ())
        if "adjudge" not in self.content:
            raise self.document.error((), f"`adjudge: {FORMAT}` is missing; it is the version of the file format")
        if self.content["adjudge"] != FORMAT:
            raise self.wrong(("adjudge",), f"is {self.content['adjudge']!r}; this version reads format {FORMAT}")
        extract = self.choice(("extract",), self.content.get("extract", "json"), ("json", "none"))
        fields = {name: self._field(name, value, ("fields", name)) for name, value in self.table(("fields",)).items()}
        meta, inputs = self._kinds("meta"), self._kinds("input")
        self.schema = assertions(self.document)
        rules = self._rules(fields)
        if not fields:
            raise self.document.error(
                (), "`fields` is missing or empty; a field is `total: {path: $.total, type: number}`"
            )
        sequence, order = self._source("sequence", fields), self._source("order", fields)
        if bool(sequence) != bool(order):
            one, other = ("sequence", "order") if sequence else ("order", "sequence")
            raise self.wrong((one,), f"goes with `{other}`, which is missing")
        return RuleFile(
            document=self.document,
            name=self.text(("name",), self.content.get("name", "rules")),
            extract=extract,
            fields=fields,
            meta=meta,
            input=inputs,
            rules=rules,
            schema=self.schema,
            scores=self._scores(rules),
            gates=tuple(self._gate(place, text) for place, text in enumerate(self.list_of(("gates",)))),
            slices=tuple(
                self._named(("slices", place), text, fields) for place, text in enumerate(self.list_of(("slices",)))
            ),
            cluster=self._source("cluster", fields),
            sequence=sequence,
            order=order,
            tests=tuple(self._test(place, test, fields, rules) for place, test in enumerate(self.list_of(("tests",)))),
        )

    # fields

    def _field(self, name: str, value: Any, way: Way) -> Field:
        if name in RESERVED:
            raise self.document.error(
                way,
                f"{name!r} is a reserved name ({', '.join(RESERVED)}); call the field otherwise, its `path` stays",
                key=True,
            )
        if not name:
            raise self.document.error(way, "a field has no name", key=True)
        table = {"type": value} if isinstance(value, str) else value
        if not isinstance(table, dict):
            raise self.wrong(
                way, f"is {shown(value)}; a field is a type, or a table such as {{path: $.total, type: number}}"
            )
        self.known(table, FIELD_KEYS, way)
        if "type" not in table:
            raise self.wrong(way, "`type` is missing: number, text, boolean, date, list(…) or object(…)")
        try:
            kind = parse_type(self.text((*way, "type"), table["type"]))
        except ValueError as error:
            raise self.wrong((*way, "type"), str(error)) from None
        path = self._path(name, table, way)
        many = path.many
        if many and kind.kind in {"list", "object", "json"}:
            raise self.wrong(
                (*way, "type"), f"is {kind}; a path into a list ([*]) leads to number, text, boolean or date"
            )
        if "places" in table and not many:
            raise self.wrong((*way, "places"), "is for a path into a list, such as $.lines[*].qty")
        places = self.whole((*way, "places"), table.get("places", PLACES), 1, MOST_PLACES) if many else 0
        return Field(
            name=name,
            path=path,
            type=kind,
            unit=self.text((*way, "unit"), table.get("unit", "")),
            required=self.truth((*way, "required"), table.get("required", True)),
            lenient=self._lenient((*way, "lenient"), table.get("lenient", False), kind),
            one_of=self._one_of((*way, "one_of"), table.get("one_of"), kind),
            range=self._range((*way, "range"), table.get("range"), kind),
            pattern=self._pattern((*way, "pattern"), table.get("pattern"), kind),
            severity=self.choice((*way, "severity"), table.get("severity", "critical"), ("critical", "warning")),
            places=places,
            title=self.text((*way, "title"), table.get("title", "")),
        )

    def _path(self, name: str, table: Mapping[str, Any], way: Way) -> Path:
        try:
            return parse_path(self.text((*way, "path"), table["path"])) if "path" in table else Path((name,))
        except ValueError as error:
            raise self.wrong((*way, "path"), str(error)) from None

    def _lenient(self, way: Way, value: Any, kind: FieldType) -> bool:
        if self.truth(way, value) and kind.kind not in {"number", "boolean", "date"}:
            raise self.wrong(way, f"is for number, boolean and date: values in quotes; {kind} has none to accept")
        return bool(value)

    def _one_of(self, way: Way, value: Any, kind: FieldType) -> tuple[Any, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not value:
            raise self.wrong(way, f"is {shown(value)}; expected a list such as [EUR, USD]")
        kinds: dict[str, Any] = {"number": (int, float), "text": str, "boolean": bool}
        expected = kinds.get(kind.kind)
        if expected is None:
            raise self.wrong(way, f"is for number, text and boolean, not for {kind}; write a rule")
        for place, item in enumerate(value):
            if not isinstance(item, expected) or (isinstance(item, bool) and kind.kind != "boolean"):
                hint = "; quote it" if kind.kind == "text" else ""
                raise self.wrong((*way, place), f"is {shown(item)}, which is no {kind.kind}{hint}")
        return tuple(float(item) if kind.kind == "number" else item for item in value)

    def _range(self, way: Way, value: Any, kind: FieldType) -> Range | None:
        if value is None:
            return None
        if kind.kind != "number":
            raise self.wrong(way, f"is for numbers, and the field is {kind}; write a rule, or `type: number`")
        if isinstance(value, dict):
            self.known(value, ("warning", "critical"), way)
            outer = self._bounds((*way, "critical"), value.get("critical", [None, None]))
            inner = self._bounds((*way, "warning"), value.get("warning", value.get("critical")))
            return Range(*inner, *outer)
        bounds = self._bounds(way, value)
        return Range(*bounds, *bounds)

    def _bounds(self, way: Way, value: Any) -> tuple[float, float]:
        wrong = not isinstance(value, list) or len(value) != 2
        if wrong or not all(item is None or (is_number(item)) for item in value):
            raise self.wrong(way, f"is {shown(value)}; expected [low, high], null for no bound")
        low, high = (
            -math.inf if value[0] is None else float(value[0]),
            math.inf if value[1] is None else float(value[1]),
        )
        if low > high:
            raise self.wrong(way, f"low {low:g} is above high {high:g}; write [low, high]")
        return low, high

    def _pattern(self, way: Way, value: Any, kind: FieldType) -> str:
        if value is None:
            return ""
        if kind.kind != "text":
            raise self.wrong(way, f"is for text, and the field is {kind}")
        return self.text(way, value)

    def _kinds(self, block: str) -> dict[str, FieldType]:
        kinds = {}
        for name, value in self.table((block,)).items():
            try:
                kinds[name] = parse_type(self.text((block, name), value))
            except ValueError as error:
                raise self.wrong((block, name), str(error)) from None
        return kinds

    # rules

    def _rules(self, fields: Mapping[str, Field]) -> dict[str, RuleText]:
        rules = {}
        for code, value in self.table(("rules",)).items():
            way: Way = ("rules", code)
            if not _CODE.fullmatch(code):
                hint = f"; for example {_as_code(code)}" if _as_code(code) else ""
                raise self.document.error(
                    way, f"a rule is called family.name in lower case, such as invoice.sum{hint}", key=True
                )
            if _family(code) in FAMILIES:
                raise self.document.error(
                    way, f"the family {_family(code)!r} is ours; choose another name before the dot", key=True
                )
            rules[code] = self._rule(code, value, way, fields)
        for code, rule in rules.items():
            for place, name in enumerate(rule.needs):
                way = ("rules", code, "needs", place)
                if name not in {known for other in self._named_rules(rules) for known in (other, _family(other))}:
                    raise self.wrong(way, self._no_rule(name, rules, _OF_ITSELF))
        return rules

    def _rule(self, code: str, value: Any, way: Way, fields: Mapping[str, Field]) -> RuleText:
        table = {"check": value} if isinstance(value, str) else value
        if not isinstance(table, dict):
            raise self.wrong(way, f"is {shown(value)}; a rule is an expression, or a table with `check`")
        self.known(table, RULE_KEYS, way)
        severity = self._severity((*way, "severity"), table.get("severity", "critical"))
        check = self._expression((*way, "check"), table.get("check"))
        observed = self._expression((*way, "observed"), table.get("observed"))
        if isinstance(severity, Limits) and not observed:
            raise self.wrong((*way, "severity"), "are limits on `observed`, which is missing")
        if not check and not isinstance(severity, Limits):
            raise self.wrong(way, "`check` is missing: an expression that is true where the rule holds")
        optional = self.words((*way, "optional"), table.get("optional", []))
        for place, name in enumerate(optional):
            if name not in fields:
                raise self.wrong((*way, "optional", place), f"there is no field {name!r}{near(name, fields)}")
        return RuleText(
            code=code,
            check=check,
            observed=observed,
            when=self._expression((*way, "when"), table.get("when")),
            severity=severity,
            signed=self.truth((*way, "signed"), table.get("signed", False)),
            title=self.text((*way, "title"), table.get("title", "")),
            passed=self._template((*way, "passed"), table.get("passed", "")),
            failed=self._template((*way, "failed"), table.get("failed", "")),
            unit=None if "unit" not in table else self.text((*way, "unit"), table["unit"]),
            needs=self.words((*way, "needs"), table.get("needs", [])),
            optional=optional,
        )

    def _severity(self, way: Way, value: Any) -> str | Limits:
        if not isinstance(value, dict):
            return self.choice(way, value, ("critical", "warning"))
        self.known(value, ("warning", "critical"), way)
        limits = {key: value.get(key) for key in ("warning", "critical")}
        for key, limit in limits.items():
            if limit is not None and not is_number(limit):
                raise self.wrong((*way, key), f"is {shown(limit)}, expected a number, a limit on `observed`")
        warning, critical = limits["warning"], limits["critical"]
        if warning is None and critical is None:
            raise self.wrong(way, "has neither `warning` nor `critical`")
        if warning is not None and critical is not None and critical < warning:
            raise self.wrong((*way, "critical"), f"is {critical:g}, under the warning limit {warning:g}")
        return Limits(None if warning is None else float(warning), None if critical is None else float(critical))

    def _expression(self, way: Way, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool | int | float):
            raise self.wrong(way, f"is the constant {shown(value)}, which says nothing about an answer")
        return self.text(way, value)

    def _template(self, way: Way, value: Any) -> str:
        """A message with holes such as {observed}; anything else in braces is refused."""
        text = self.text(way, value)
        for hole in re.findall(r"\{([^{}]*)\}", text.replace("{{", "").replace("}}", "")):
            if hole not in _HOLES:
                raise self.wrong(
                    way, f"{{{hole}}} is no part of a message{near(hole, _HOLES)}; these are: {', '.join(_HOLES)}"
                )
        rest = re.sub(r"\{[^{}]*\}", "", text.replace("{{", "").replace("}}", ""))
        if "{" in rest or "}" in rest:
            raise self.wrong(way, "has a brace that is not closed; write {{ for a brace")
        return text

    def _named_rules(self, rules: Mapping[str, RuleText]) -> list[str]:
        """The rules that scores and other rules may name: those of the file, and those of its schema."""
        return [*rules, *dict.fromkeys(each.code for each in self.schema)]

    def _no_rule(self, code: str, rules: Mapping[str, RuleText], ours: str) -> str:
        """Why a name is none of a rule that can be named here; `ours` is what to do where it is a check of fields."""
        if _family(code) in FAMILIES and _family(code) != "schema":
            return f"{code!r} checks fields; {ours}"
        known = self._named_rules(rules)
        return f"there is no rule {code!r}{near(code, known)}" + ("" if known else "; `rules` is empty")

    def _scores(self, rules: Mapping[str, RuleText]) -> dict[str, dict[str, float]]:
        scores = {}
        for name, value in self.table(("scores",)).items():
            way: Way = ("scores", name)
            if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise self.document.error(way, "a score is called by one word in lower case", key=True)
            if not isinstance(value, dict) or not isinstance(value.get("weights"), dict) or not value["weights"]:
                raise self.wrong(way, "a score is {weights: {RULE: WEIGHT}}")
            self.known(value, ("weights", "title"), way)
            for code, weight in value["weights"].items():
                at = (*way, "weights", code)
                if code not in self._named_rules(rules):
                    raise self.document.error(at, self._no_rule(code, rules, _UNWEIGHED), key=True)
                if not is_number(weight) or weight <= 0:
                    raise self.wrong(at, f"is {shown(weight)}, expected a positive weight")
            scores[name] = {code: float(weight) for code, weight in value["weights"].items()}
        return scores

    def _gate(self, place: int, text: Any) -> Gate:
        try:
            return Gate.parse(self.text(("gates", place), text))
        except ConfigError as error:
            raise self.wrong(("gates", place), str(error)) from None

    def _test(self, place: int, test: Any, fields: Mapping[str, Field], rules: Mapping[str, RuleText]) -> SelfTest:
        way: Way = ("tests", place)
        if not isinstance(test, dict) or not isinstance(test.get("row"), dict):
            raise self.wrong(way, "a self-test is {row: {FIELD: VALUE}, fails: [RULE]}")
        self.known(test, TEST_KEYS, way)
        for block in ("row", "gold", "previous"):
            more = {str(each.steps[0]) for each in self.schema if each.steps} if block == "row" else set()
            self.known(test.get(block) or {}, (*fields, *sorted(more - set(fields))), (*way, block), "field")
        codes = (*self._named_rules(rules), *_OURS)
        lists: dict[str, Any] = {}
        for key in ("fails", "not_applicable"):
            lists[key] = self.words((*way, key), test.get(key, []))
            for index, code in enumerate(lists[key]):
                if code not in codes:
                    raise self.wrong((*way, key, index), f"there is no rule {code!r}{near(code, codes)}")
        parts: dict[str, Any] = {key: dict(test.get(key) or {}) for key in ("row", "gold", "meta", "input", "previous")}
        return SelfTest(place + 1, self.text((*way, "name"), test.get("name", "")), **parts, **lists)

    # small parts

    def _source(self, key: str, fields: Mapping[str, Field]) -> str:
        return self._named((key,), self.content[key], fields) if self.content.get(key) is not None else ""

    def _named(self, way: Way, value: Any, fields: Mapping[str, Field]) -> str:
        """A slice, cluster, sequence or order: meta.KEY, input.KEY, a field, `id`."""
        text = self.text(way, value)
        block, dot, key = text.partition(".")
        if text in fields or text == "id":
            return text
        if dot and key and block in {"meta", "input"}:
            declared = self.content.get(block) or {}
            if declared and key not in declared:
                raise self.wrong(way, f"is {text!r}, and `{block}` declares no {key!r}{near(key, declared)}")
            return text
        known = [*fields, "meta.KEY", "input.KEY"]
        raise self.wrong(way, f"is {text!r}, expected meta.KEY, input.KEY or a field{near(text, known)}")


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
