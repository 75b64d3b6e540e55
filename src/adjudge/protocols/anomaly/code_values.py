"""What the code scanner knows of a value, and small questions about syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from adjudge.protocols.anomaly.words import words

LABEL_WORDS = frozenset({"y", "label", "labels", "target", "targets", "classes", "truth", "gt"})
STATISTICS = frozenset(
    ["mean", "std", "var", "median", "min", "max", "ptp", "nanmean", "nanstd", "nanmedian", "nanmin", "nanmax"]
)
FITS = frozenset({"fit", "fit_transform", "partial_fit", "fit_predict", "fit_resample"})
QUANTILES = frozenset({"percentile", "quantile", "nanpercentile", "nanquantile"})
CROSS_VALIDATIONS = frozenset({"cross_val_score", "cross_validate", "cross_val_predict"})
READERS = frozenset(
    {"read_csv", "read_parquet", "read_table", "load", "loadtxt", "genfromtxt", "open", "read_feather", "scan_parquet"}
)
CURVES = frozenset({"roc_curve", "precision_recall_curve"})
FILLS = frozenset({"fillna", "fill_null", "fill_nan"})
GROUPED = frozenset({"groupby", "group_by", "over"})
FILTERS = frozenset({"filter", "query", "where", "compress", "take"})
MODULES = frozenset({"np", "numpy", "pd", "torch", "plt", "pl"})
_CONCATENATIONS = frozenset(
    {"concat", "concatenate", "vstack", "hstack", "append", "stack", "row_stack", "r_", "chain"}
)


@dataclass(frozen=True)
class Value:
    """What is known of a value."""

    splits: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()
    strings: frozenset[str] = frozenset()
    fitted: frozenset[int] = frozenset()
    made_by: str = ""
    quantile: bool = False
    statistic: bool = False
    """A mean, spread or extreme of rows."""
    shuffled: frozenset[int] = frozenset()
    """Lines on which its rows were brought into a random order."""
    parts: tuple[Value, ...] | None = None

    def __or__(self, other: Value) -> Value:
        return Value(
            self.splits | other.splits,
            self.roots | other.roots,
            self.strings | other.strings,
            self.fitted | other.fitted,
            self.made_by if self.made_by == other.made_by else "",
            self.quantile or other.quantile,
            self.statistic and other.statistic,
            self.shuffled | other.shuffled,
        )


NOTHING = Value()


def joined(values: Sequence[Value]) -> Value:
    """All that is known of several values together."""
    return reduce(or_, values, NOTHING)


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of names, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def called(node: ast.expr) -> str:
    """The last name of what is called."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_label(name: str) -> bool:
    """Whether a variable of this name holds labels."""
    return bool(LABEL_WORDS & set(words(name.rpartition(".")[2])))


def concatenates(node: ast.expr) -> bool:
    """Whether an expression puts rows one after the other, so that the name of the result says nothing."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return True
    return any(isinstance(item, ast.Call) and called(item.func) in _CONCATENATIONS for item in ast.walk(node))


def names_in(node: ast.AST) -> set[str]:
    """The words of every name inside an expression."""
    names = (called(item) for item in ast.walk(node) if isinstance(item, ast.Name | ast.Attribute))
    return {word for name in names for word in words(name)}


def frame_statistic(node: ast.AST) -> bool:
    """Whether an expression of Polars takes a mean or spread of a whole column, not one over groups."""
    calls = [item for item in ast.walk(node) if isinstance(item, ast.Call)]
    grouped = {
        id(item.func.value) for item in calls if isinstance(item.func, ast.Attribute) and item.func.attr == "over"
    }
    return any(
        called(item.func) in STATISTICS and id(item) not in grouped and {"pl", "col", "cs"} & names_in(item)
        for item in calls
    )


def is_comparison(node: ast.expr) -> bool:
    """Whether a value is true or false, or a count of that, under any calls around it."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not (isinstance(node.func.value, ast.Name) and node.args):
            node = node.func.value
        elif node.args:
            node = node.args[0]
        else:
            return False
    return isinstance(node, ast.Compare | ast.BoolOp)


def constants(node: ast.expr) -> Iterator[tuple[str, ast.Constant]]:
    """The strings of a literal list, also of sums of lists."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value, node
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        for item in node.elts:
            yield from constants(item)
    elif isinstance(node, ast.BinOp):
        yield from constants(node.left)
        yield from constants(node.right)


def scales(node: ast.expr) -> bool:
    """Whether an expression subtracts or divides."""
    return any(isinstance(item, ast.BinOp) and isinstance(item.op, ast.Sub | ast.Div) for item in ast.walk(node))
