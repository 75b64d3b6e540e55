"""Calls of which the code scanner knows more than where their rows come from: curves, fills, frames, shuffles."""

from __future__ import annotations

import ast
from dataclasses import replace

from adjudge.protocols.anomaly.code_rules import LeakRules, Scope
from adjudge.protocols.anomaly.code_values import (
    CURVES,
    FILLS,
    FILTERS,
    Value,
    dotted,
    frame_statistic,
    is_statistic,
    joined,
    scales,
)
from adjudge.protocols.anomaly.words import TEST


def known_call(
    rules: LeakRules, name: str, node: ast.Call, receiver: Value, given: Value, scope: Scope
) -> Value | None:
    """Calls of which more is known: curves, fills, expressions over a frame, filters; None for every other."""
    if name in CURVES:
        plain = Value(given.splits, given.roots)
        return replace(plain, parts=(plain, plain, replace(plain, quantile=TEST in given.splits)))
    if name in FILLS and receiver.roots:
        strategy = any(item.arg in {"strategy", "method"} and is_statistic(item.value) for item in node.keywords)
        filled = replace(receiver, made_by=name, parts=None)
        if given.statistic or strategy:
            statistic = given if given.statistic else receiver
            filled = replace(filled, fitted=filled.fitted | rules.scaled(node, receiver, statistic, scope))
        return filled
    if name in {"with_columns", "select"} and receiver.roots:
        scaled = [item for item in node.args if isinstance(item, ast.BinOp | ast.Call) and scales(item)]
        fitted = [rules.scaled(item, receiver, receiver, scope) for item in scaled if frame_statistic(item)]
        return replace(receiver, made_by=name, fitted=receiver.fitted.union(*fitted), parts=None)
    if name in FILTERS and receiver.roots and not receiver.splits and given.splits:
        for root in receiver.roots if TEST in given.splits else ():
            scope.split_roots.setdefault(root, node.lineno)
        return Value(given.splits)
    return None


def shuffled_in_place(node: ast.Call, positional: list[Value], lines: frozenset[int], scope: Scope) -> Value:
    """Arguments brought into a random order: each keeps its name, and the call may return them too."""
    for argument, value in zip(node.args, positional, strict=True):
        key = dotted(argument)
        if key is not None:
            scope.names[key] = replace(value, shuffled=value.shuffled | lines)
    parts = tuple(replace(value, shuffled=value.shuffled | lines, parts=None) for value in positional)
    return replace(joined(parts), parts=parts if len(parts) > 1 else None)
