"""What is a leak in code: fits, splits, thresholds and columns, judged by what is known of the values they are given."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from adjudge.protocols.anomaly import code_values as syntax
from adjudge.protocols.anomaly.code_values import NOTHING, Value
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL, banned, is_threshold, words

_TRANSFORMERS = ("Scaler", "PCA", "Imputer", "Encoder", "Normalizer", "Transformer", "Vectorizer", "SelectKBest")
_TRANSFORMER_WORDS = frozenset({"scaler", "pca", "imputer", "encoder", "normalizer", "selector"})
_CALIBRATORS = frozenset({"IsotonicRegression", "CalibratedClassifierCV"})
_CALIBRATOR_WORDS = frozenset({"calibrator", "calibration", "calib", "calibrated", "isotonic", "platt", "conformal"})
_SHUFFLERS = frozenset({"ShuffleSplit", "StratifiedShuffleSplit", "random_split"})
_FOLDS = frozenset({"KFold", "StratifiedKFold", "RepeatedKFold", "RepeatedStratifiedKFold"})
_GROUP_WORDS = frozenset((
    "flight", "flights", "group", "groups", "id", "ids", "subject", "subjects", "session", "sessions",
    "patient", "patients", "episode", "episodes",
))  # fmt: skip
_FEATURE_WORDS = frozenset(
    ["feature", "features", "col", "cols", "column", "columns", "channel", "channels", "sensor", "sensors", "inputs"]
)
_REFUSED_WORDS = frozenset(
    ["banned", "forbidden", "exclude", "excluded", "drop", "dropped", "ignore", "ignored", "leaky", "blacklist", "skip"]
)
_TABLE_WORDS = frozenset((
    "weights", "weight", "config", "cfg", "conf", "params", "parameters", "settings", "options", "opts", "kwargs", "args",
    "metrics", "results", "result", "limits", "colors", "colours", "units", "titles", "names", "registry", "mapping",
    "map", "lookup", "dict", "report", "summary", "models", "detectors", "thresholds", "env", "environ", "gains",
))  # fmt: skip
_OUTCOME_WORDS = frozenset((
    "score", "scores", "error", "errors", "err", "residual", "residuals", "loss", "losses", "prediction", "predictions",
    "pred", "preds", "acc", "auc", "latency", "metric", "rank", "ranks", "prob", "proba", "importance", "importances",
))  # fmt: skip
_DICTS = frozenset({"dict", "load", "loads", "safe_load"})
_FRAME_WORDS = frozenset(["df", "data", "frame", "dataset", "flights", "flight", "train", "test", "rows", "log"])

Function = ast.FunctionDef | ast.AsyncFunctionDef


class CodeFinding(NamedTuple):
    """One leak in code: its rule code, where, and why."""

    code: str
    line: int
    why: str


@dataclass(frozen=True)
class Fit:
    """A fit on rows whose split is not known; a leak if they are split into train and test elsewhere."""

    line: int
    roots: frozenset[str]
    transforms: bool


@dataclass
class Scope:
    """One function body or module body being read."""

    names: dict[str, Value]
    functions: dict[str, Function]
    depth: int = 0
    returned: list[Value] = field(default_factory=list)
    control: list[Value] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    split_roots: dict[str, int] = field(default_factory=dict)


class LeakRules:
    """The rules, and every leak they found; nodes in `exempt` select labels, which are no features."""

    def __init__(self) -> None:
        self.findings: list[CodeFinding] = []
        self.exempt: set[int] = set()

    def whole_fits(self, scope: Scope) -> None:
        """A fit on rows that are split into train and test elsewhere in the same scope."""
        for fit in scope.fits:
            lines = [scope.split_roots[root] for root in fit.roots if root in scope.split_roots]
            if lines and (fit.transforms or fit.line < min(lines)):
                self._fitted_before(fit.line, min(lines))

    def fit(
        self, name: str, node: ast.Call, receiver: Value, positional: list[Value], named: dict[str, Value], scope: Scope
    ) -> Value:
        """A fit on rows of test or validation; what the fit returns."""
        rows = positional[0] if positional else next((named[key] for key in ("X", "x", "data") if key in named), None)
        others = [*positional[1:], *(value for key, value in named.items() if key not in {"X", "x", "data"})]
        seen = rows.splits if rows is not None else frozenset()
        calibrates = receiver.made_by in _CALIBRATORS or _named_by(node, _CALIBRATOR_WORDS)
        if TEST in seen or (VAL in seen and not calibrates):
            mixed = "validation" if seen == {VAL} else " and ".join(sorted(seen))
            self.leak("code.fit_on_test", node.lineno, f"{name} sees rows of {mixed}; fit on train alone")
        elif any(TEST in value.splits for value in others):
            why = f"{name} is given rows of test; early stopping belongs to validation"
            self.leak("code.fit_on_test", node.lineno, why)
        transforms = name in {"fit_transform", "fit_resample"} or receiver.made_by.endswith(_TRANSFORMERS)
        transforms = transforms or _named_by(node, _TRANSFORMER_WORDS)
        fitted: frozenset[int] = frozenset()
        if rows is not None and not seen and rows.roots and not (node.args and _is_label_of(node.args[0])):
            scope.fits.append(Fit(node.lineno, rows.roots, transforms))
            fitted = frozenset({node.lineno})
        if name in {"fit_transform", "fit_predict", "fit_resample"} and rows is not None:
            return replace(rows, fitted=rows.fitted | fitted, made_by="", parts=None)
        return Value(made_by=receiver.made_by)

    def train_test_split(self, node: ast.Call, positional: list[Value], scope: Scope) -> Value:
        """A shuffling split of a time series, or one after a fit; the halves."""
        names = set().union(*(words(key) for item in node.args if (key := syntax.dotted(item))))
        if _constant_argument(node, "shuffle") is not False and not names & _GROUP_WORDS:
            why = "train_test_split shuffles rows of a time series; split by flight"
            self.leak("code.shuffled_split", node.lineno, why)
        first = positional[0] if positional else NOTHING
        for value in positional:
            for line in sorted(value.fitted):
                self._fitted_before(line, node.lineno)
            for root in value.roots:
                scope.split_roots.setdefault(root, node.lineno)
        parts = [Value(value.splits or frozenset({half})) for value in positional for half in (TRAIN, TEST)]
        return Value(first.splits, parts=tuple(parts))

    def shuffle(self, name: str, node: ast.Call, receiver: Value) -> None:
        """Folds and samples that shuffle rows of a time series."""
        if name in _SHUFFLERS or (name in _FOLDS and _constant_argument(node, "shuffle") is True):
            why = f"{name} shuffles rows of a time series; split by flight"
            self.leak("code.shuffled_split", node.lineno, why)
        every = 1 in {_constant_argument(node, "frac"), _constant_argument(node, "fraction")}
        if name == "sample" and every and not receiver.splits and not _named_by(node, _GROUP_WORDS):
            self.leak("code.shuffled_split", node.lineno, "sample of all rows shuffles a time series")

    def scaled(self, node: ast.expr, rows: Value, statistic: Value, scope: Scope) -> frozenset[int]:
        """Rows that are scaled or filled by a statistic: of test it is a leak; of all rows, if they are split elsewhere."""
        if (syntax.LABEL_WORDS | _OUTCOME_WORDS) & syntax.names_in(node) or not (rows.splits or rows.roots):
            return frozenset()
        if TEST in statistic.splits:
            why = "rows are scaled by a mean, spread or extreme of test; take those of train"
            self.leak("code.fit_on_test", node.lineno, why)
        elif not statistic.splits and statistic.roots & rows.roots:
            scope.fits.append(Fit(node.lineno, statistic.roots & rows.roots, transforms=True))
            return frozenset({node.lineno})
        return frozenset()

    def permuted(self, name: str, node: ast.Call, positional: list[Value]) -> frozenset[int]:
        """The line of a call that brings rows of no split into a random order; an order of flights is none."""
        if name not in {"permutation", "shuffle"} or not node.args or any(value.splits for value in positional):
            return frozenset()
        roots = {word for value in positional for root in value.roots for word in words(root)}
        known = syntax.names_in(node.args[0]) | roots
        return frozenset() if known & _GROUP_WORDS else frozenset({node.lineno})

    def split_of_shuffled(self, value: Value, line: int) -> None:
        """Rows that are named as a split after they were brought into a random order."""
        for shuffled in sorted(value.shuffled):
            why = f"rows of a time series are shuffled, then line {line} splits them; split by flight"
            self.leak("code.shuffled_split", shuffled, why)

    def columns_of_call(self, name: str, node: ast.Call) -> None:
        """Banned columns that a call selects: `select`, `pl.col`, `usecols`."""
        chosen = node.args if name in {"select", "col", "get_column", "with_columns"} else []
        chosen = [*chosen, *(item.value for item in node.keywords if item.arg in {"usecols", "columns"})]
        for argument in chosen if name not in {"drop", "exclude", "rename", "DataFrame"} else ():
            for text, item in syntax.constants(argument):
                reason = banned(text)
                if reason is not None and id(item) not in self.exempt:
                    self.leak("code.banned_column", item.lineno, f"column {text!r} is selected: {reason}")

    def keywords(self, node: ast.Call, named: dict[str, Value]) -> None:
        """An argument that sets a threshold or a contamination from test rows."""
        for item in node.keywords:
            value = named.get(item.arg or "**", NOTHING)
            if item.arg is None or TEST not in value.splits:
                continue
            if item.arg == "contamination" or (is_threshold(item.arg) and value.quantile):
                why = f"{item.arg} is set from test rows; use clean validation"
                self.leak("code.threshold_from_test", node.lineno, why)

    def threshold(self, name: str, value: Value, node: ast.expr, line: int, scope: Scope) -> None:
        """A threshold that is chosen with test rows."""
        if not is_threshold(name) or syntax.is_comparison(node):
            return
        chosen = any(TEST in condition.splits for condition in scope.control)
        if TEST in value.splits or chosen:
            why = f"{name} is chosen with test rows; set it on clean validation scores"
            self.leak("code.threshold_from_test", line, why)

    def feature_list(self, name: str, node: ast.expr) -> None:
        """A banned column in a list of features."""
        parts = set(words(name))
        if not parts & _FEATURE_WORDS or parts & (_REFUSED_WORDS | syntax.LABEL_WORDS):
            return
        for text, item in syntax.constants(node):
            reason = banned(text)
            if reason is not None:
                self.leak("code.banned_column", item.lineno, f"{text!r} is in the feature list: {reason}")

    def column(self, name: str, node: ast.Subscript | ast.Attribute, base: Value = NOTHING) -> None:
        """A banned column that is selected, as a key or as an attribute of a frame; the key of a dictionary is none."""
        reason = banned(name)
        if reason is None or id(node) in self.exempt or not isinstance(node.ctx, ast.Load):
            return
        if isinstance(node, ast.Subscript):
            owner = syntax.names_in(node.value)
            selected = base.made_by not in _DICTS and (not owner & _TABLE_WORDS or bool(owner & _FRAME_WORDS))
        else:
            selected = bool(_FRAME_WORDS & set(words(syntax.dotted(node.value) or "")))
        if selected:
            self.leak("code.banned_column", node.lineno, f"column {name!r} is selected: {reason}")

    def _fitted_before(self, line: int, split_line: int) -> None:
        why = f"fitted on rows that line {split_line} splits into train and test; split first, fit on train"
        self.leak("code.fit_before_split", line, why)

    def leak(self, code: str, line: int, why: str) -> None:
        """Note a leak on a line."""
        self.findings.append(CodeFinding(code, line, why))


def _constant_argument(node: ast.Call, name: str) -> Any:
    """The constant that a keyword argument is, None for any other."""
    return next((i.value.value for i in node.keywords if i.arg == name and isinstance(i.value, ast.Constant)), None)


def _named_by(node: ast.Call, wanted: frozenset[str]) -> bool:
    """Whether the object whose method is called has one of the wanted words in its name."""
    key = syntax.dotted(node.func.value) if isinstance(node.func, ast.Attribute) else None
    return bool(wanted & set(words(key or "")))


def _is_label_of(node: ast.expr) -> bool:
    """Whether an expression is a variable of labels, or a part of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return syntax.is_label(syntax.dotted(node) or "")


def known_call(
    rules: LeakRules, name: str, node: ast.Call, receiver: Value, arguments: Value, scope: Scope
) -> Value | None:
    """Calls of which more is known: curves, fills, expressions over a frame, filters; None for every other."""
    if name in syntax.CURVES:
        plain = Value(arguments.splits, arguments.roots)
        return replace(plain, parts=(plain, plain, replace(plain, quantile=TEST in arguments.splits)))
    if name in syntax.FILLS and receiver.roots:
        strategy = bool(syntax.STATISTICS & {_constant_argument(node, "strategy"), _constant_argument(node, "method")})
        filled = replace(receiver, made_by=name, parts=None)
        if arguments.statistic or strategy:
            statistic = arguments if arguments.statistic else receiver
            filled = replace(filled, fitted=filled.fitted | rules.scaled(node, receiver, statistic, scope))
        return filled
    if name in {"with_columns", "select"} and receiver.roots:
        scaled = [item for item in node.args if isinstance(item, ast.BinOp | ast.Call) and syntax.scales(item)]
        fitted = [rules.scaled(item, receiver, receiver, scope) for item in scaled if syntax.frame_statistic(item)]
        return replace(receiver, made_by=name, fitted=receiver.fitted.union(*fitted), parts=None)
    if name in syntax.FILTERS and receiver.roots and not receiver.splits and arguments.splits:
        for root in receiver.roots if TEST in arguments.splits else ():
            scope.split_roots.setdefault(root, node.lineno)
        return Value(arguments.splits)
    return None


def shuffled_in_place(node: ast.Call, positional: list[Value], lines: frozenset[int], scope: Scope) -> Value:
    """Arguments brought into a random order: each keeps its name, and the call may return them too."""
    for argument, value in zip(node.args, positional, strict=True):
        key = syntax.dotted(argument)
        if key is not None:
            scope.names[key] = replace(value, shuffled=value.shuffled | lines)
    parts = tuple(replace(value, shuffled=value.shuffled | lines, parts=None) for value in positional)
    return replace(syntax.joined(parts), parts=parts if len(parts) > 1 else None)
