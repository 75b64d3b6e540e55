"""Leaks in source code: an AST walk that follows rows of train, validation and test through names.

Each value carries where its rows come from (`splits`), which whole tables it was made of (`roots`), the strings it may
hold, and whether it is a quantile of test rows. Assignments, slices, concatenations, calls, and functions of the same
module hand these on. What a name says counts only where nothing better is known. What is a leak stands in `code_rules`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from adjudge.protocols.anomaly import code_values as syntax
from adjudge.protocols.anomaly.code_rules import CodeFinding, Function, LeakRules, Scope, known_call, shuffled_in_place
from adjudge.protocols.anomaly.code_values import NOTHING, Value
from adjudge.protocols.anomaly.words import TEST, TRAIN, VAL, splits_of, words

_DEPTH = 6


def scan(tree: ast.Module) -> list[CodeFinding]:
    """Every leak of one module, by line."""
    reader = _Reader(tree)
    reader.read_module(tree)
    return sorted(set(reader.rules.findings), key=lambda item: (item.line, item.code, item.why))


class _Reader:
    def __init__(self, tree: ast.Module) -> None:
        self.rules = LeakRules()
        self._has_train = any(
            isinstance(node, ast.Name | ast.arg)
            and TRAIN in splits_of(node.id if isinstance(node, ast.Name) else node.arg)
            for node in ast.walk(tree)
        )
        self._active: list[ast.AST] = []

    def read_module(self, tree: ast.Module) -> None:
        functions = {node.name: node for node in tree.body if isinstance(node, Function)}
        scope = Scope({}, functions)
        self._block(tree.body, scope)
        self.rules.whole_fits(scope)
        for node in tree.body:
            if isinstance(node, Function):
                self._function(node, scope)
            elif isinstance(node, ast.ClassDef):
                self._class(node, scope)

    def _class(self, node: ast.ClassDef, outer: Scope) -> None:
        names = dict(outer.names)
        methods = [item for item in node.body if isinstance(item, Function)]
        for _ in range(2):  # attributes set by a later method are known in the second pass
            for method in methods:
                scope = self._function(method, replace(outer, names=names))
                names |= {key: value for key, value in scope.names.items() if key.startswith("self.")}

    def _function(self, node: Function, outer: Scope, bound: dict[str, Value] | None = None) -> Scope:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        bound = bound or {}
        names = outer.names | {item.arg: bound.get(item.arg) or self._named(item.arg) for item in arguments}
        inner = {item.name: item for item in node.body if isinstance(item, Function)}
        scope = Scope(names, {**outer.functions, **inner}, outer.depth + 1)
        self._active.append(node)
        self._block(node.body, scope)
        self._active.pop()
        self.rules.whole_fits(scope)
        for item in inner.values():
            if item not in self._active and scope.depth < _DEPTH:
                self._function(item, scope)
        return scope

    # Statements

    def _block(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Assign():
                if all(syntax.is_label(syntax.dotted(target) or "") for target in node.targets):
                    self.rules.exempt |= {id(item) for item in ast.walk(node.value)}
                value = self._value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, node.value, scope)
            case ast.AnnAssign() if node.value is not None:
                self._assign(node.target, self._value(node.value, scope), node.value, scope)
            case ast.AugAssign():
                value = self._value(node.target, scope) | self._value(node.value, scope)
                self._assign(node.target, value, node.value, scope)
            case ast.Return() if node.value is not None:
                scope.returned.append(self._value(node.value, scope))
            case ast.Expr():
                self._value(node.value, scope)
            case ast.If():
                scope.control.append(self._value(node.test, scope))
                before = dict(scope.names)
                self._block(node.body, scope)
                if_names, scope.names = scope.names, before
                self._block(node.orelse, scope)
                scope.control.pop()
                for name, value in if_names.items():
                    other = scope.names.get(name, value)
                    scope.names[name] = value if other == value else value | other
            case ast.For() | ast.AsyncFor():
                value = self._value(node.iter, scope)
                value = NOTHING if value.made_by in syntax.GROUPED else value
                for _ in range(2):
                    self._loop_target(node.target, value, scope)
                    self._block(node.body, scope)
                self._block(node.orelse, scope)
            case ast.While():
                for _ in range(2):
                    scope.control.append(self._value(node.test, scope))
                    self._block(node.body, scope)
                    scope.control.pop()
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self._value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, value, item.context_expr, scope)
                self._block(node.body, scope)
            case ast.Try() | ast.TryStar():
                self._block(node.body, scope)
                for handler in node.handlers:
                    self._block(handler.body, scope)
                self._block([*node.orelse, *node.finalbody], scope)
            case ast.Match():
                self._value(node.subject, scope)
                for match_case in node.cases:
                    self._block(match_case.body, scope)

    def _loop_target(self, target: ast.expr, value: Value, scope: Scope) -> None:
        for name in (item.id for item in ast.walk(target) if isinstance(item, ast.Name)):
            named = NOTHING if words(name) == ("val",) else self._named(name)
            scope.names[name] = named if named.splits else replace(value, parts=None)

    def _assign(self, target: ast.expr, value: Value, node: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.parts
            if parts is not None and len(parts) == len(target.elts):
                nodes = node.elts if isinstance(node, ast.Tuple | ast.List) else [node] * len(parts)
                for item, part, source in zip(target.elts, parts, nodes, strict=True):
                    self._assign(item, part, source, scope)
                return
            for item in target.elts:
                inner = item.value if isinstance(item, ast.Starred) else item
                self._assign(inner, replace(value, parts=None), node, scope)
            return
        key = syntax.dotted(target)
        if key is None:
            if isinstance(target, ast.Subscript):
                self._value(target.slice, scope)
                base = syntax.dotted(target.value)
                if base is not None:
                    scope.names[base] = self._value(target.value, scope) | replace(value, strings=frozenset())
            return
        last = key.rpartition(".")[2]
        named_splits = splits_of(last)
        if TEST in named_splits:
            self.rules.split_of_shuffled(value, target.lineno)
        self.rules.threshold(last, value, node, target.lineno, scope)
        self.rules.feature_list(last, node)
        if named_splits and not value.splits:
            for root in value.roots if named_splits & {TEST, VAL} else ():
                scope.split_roots.setdefault(root, target.lineno)
            value = self._named(last)
        elif named_splits and named_splits < value.splits and not syntax.concatenates(node):
            value = replace(value, splits=named_splits, roots=frozenset({last}))
        elif not value.roots and not value.splits:
            value = replace(value, roots=frozenset({last}))
        scope.names[key] = value

    # Expressions

    def _value(self, node: ast.AST | None, scope: Scope) -> Value:
        match node:
            case None | ast.JoinedStr():
                return NOTHING
            case ast.Constant():
                return Value(strings=frozenset({node.value})) if isinstance(node.value, str) else NOTHING
            case ast.Name():
                return scope.names.get(node.id) or self._named(node.id)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.Tuple() | ast.List() | ast.Set():
                parts = tuple(self._value(item, scope) for item in node.elts)
                return replace(syntax.joined(parts), parts=parts)
            case ast.Dict():
                return replace(syntax.joined([self._value(item, scope) for item in node.values]), made_by="dict")
            case ast.BinOp():
                return self._arithmetic(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Compare():
                sides = [self._value(item, scope) for item in (node.left, *node.comparators)]
                if any(side.quantile for side in sides):
                    why = "the scores are compared with a quantile of test rows"
                    self.rules.leak("code.threshold_from_test", node.lineno, why)
                return Value(syntax.joined(sides).splits)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case ast.Lambda():
                return self._value(node.body, scope)
            case ast.IfExp():
                return self._value(node.body, scope) | self._value(node.orelse, scope)
            case ast.NamedExpr():
                value = self._value(node.value, scope)
                self._assign(node.target, value, node.value, scope)
                return value
            case ast.Starred() | ast.Await():
                return self._value(node.value, scope)
            case _:
                return replace(
                    syntax.joined([self._value(item, scope) for item in ast.iter_child_nodes(node)]), parts=None
                )

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        key = syntax.dotted(node)
        if key is not None and key in scope.names:
            return scope.names[key]
        base = self._value(node.value, scope)
        self.rules.column(node.attr, node)
        named_splits = splits_of(node.attr)
        if named_splits and not base.splits:
            return Value(named_splits, frozenset({key or node.attr}))
        if key is not None and key.startswith("self."):
            return Value(roots=frozenset({key}))
        return replace(base, made_by="")

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        base, index = self._value(node.value, scope), self._value(node.slice, scope)
        for text in sorted(index.strings):
            self.rules.column(text, node, base)
        named_splits = frozenset().union(*(splits_of(text) for text in index.strings)) | index.splits
        if named_splits and not base.splits:
            for root in base.roots if TEST in named_splits else ():
                scope.split_roots.setdefault(root, node.lineno)
            return Value(named_splits, quantile=base.quantile)
        if base.parts is not None and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            with suppress(IndexError):
                return base.parts[node.slice.value]
        splits = base.splits | (index.splits if base.splits else frozenset())
        shuffled = base.shuffled | (frozenset() if base.splits else index.shuffled)
        return replace(base, splits=splits, shuffled=shuffled, parts=None)

    def _arithmetic(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self._value(node.left, scope), self._value(node.right, scope)
        both = left | right
        if right.statistic and not left.statistic and isinstance(node.op, ast.Sub | ast.Div):
            both = replace(both, fitted=both.fitted | self.rules.scaled(node, left, right, scope))
        return replace(both, parts=None)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Value:
        saved = dict(scope.names)
        for generator in node.generators:
            self._loop_target(generator.target, self._value(generator.iter, scope), scope)
            for condition in generator.ifs:
                self._value(condition, scope)
        element = node.value if isinstance(node, ast.DictComp) else node.elt
        value = self._value(element, scope)
        scope.names = saved
        return replace(value, parts=None)

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        name = syntax.called(node.func)
        receiver = self._value(node.func.value, scope) if isinstance(node.func, ast.Attribute) else NOTHING
        if name in {"drop", "pop", "discard", "remove", "difference"}:
            return replace(receiver, made_by="", parts=None)
        positional = [self._value(item, scope) for item in node.args]
        named = {item.arg or "**": self._value(item.value, scope) for item in node.keywords}
        self.rules.keywords(node, named)
        if name in syntax.FITS and isinstance(node.func, ast.Attribute):
            return self.rules.fit(name, node, receiver, positional, named, scope)
        if name == "train_test_split":
            return self.rules.train_test_split(node, positional, scope)
        self.rules.shuffle(name, node, receiver)
        self.rules.columns_of_call(name, node)
        everything = syntax.joined([*positional, *named.values()])
        everything = replace(everything, statistic=any(value.statistic for value in positional))
        known = known_call(self.rules, name, node, receiver, everything, scope)
        if known is not None:
            return known
        shuffled = self.rules.permuted(name, node, positional)
        if shuffled and name == "shuffle":
            return shuffled_in_place(node, positional, shuffled, scope)
        if name in syntax.CROSS_VALIDATIONS and everything.fitted:
            for line in sorted(everything.fitted):
                why = f"fitted on all rows before the cross-validation of line {node.lineno}; put it into a Pipeline"
                self.rules.leak("code.fit_before_split", line, why)
        function = scope.functions.get(name) if isinstance(node.func, ast.Name) and scope.depth < _DEPTH else None
        if function is not None and function not in self._active:
            return self._local_call(function, positional, named, scope)
        if name in syntax.READERS:
            stems = (text.rpartition("/")[2].partition(".")[0] for text in everything.strings)
            named_splits = frozenset().union(*map(splits_of, stems))
            return Value(named_splits or everything.splits, frozenset({f"{name}:{node.lineno}"}))
        quantile = name in syntax.QUANTILES and TEST in (receiver | everything).splits
        # np.argmax(…) and the like: the module's name says nothing about rows.
        of_module = isinstance(node.func, ast.Attribute) and syntax.dotted(node.func.value) in syntax.MODULES
        source = receiver if (receiver.splits or receiver.roots) and not of_module else NOTHING
        statistic = name in syntax.STATISTICS and receiver.made_by not in syntax.GROUPED
        result = source | everything | Value(shuffled=shuffled)
        strings = everything.strings if name in {"list", "set", "tuple", "sorted"} else frozenset[str]()
        return replace(result, strings=strings, made_by=name, quantile=quantile, statistic=statistic)

    def _local_call(self, function: Function, positional: list[Value], named: dict[str, Value], scope: Scope) -> Value:
        parameters = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
        bound = dict(zip(parameters, positional, strict=False)) | named
        optional = parameters[len(parameters) - len(function.args.defaults) :]
        optional += [item.arg for item in function.args.kwonlyargs]
        left = {name: NOTHING for name in optional if name not in bound}
        # An argument of unknown origin leaves the parameter's own name to speak.
        bound = {key: value for key, value in bound.items() if value.splits or value.strings or value.fitted}
        inner = self._function(function, scope, bound | left)
        # A function may return one value here and a tuple there; the caller unpacks only the latter.
        single = [value for value in inner.returned if value.parts is None]
        several = [value for value in inner.returned if value.parts is not None]
        return replace(syntax.joined(single or several), parts=several[0].parts if several else None)

    def _named(self, name: str) -> Value:
        """What a name alone says of its value."""
        named_splits = splits_of(name)
        if words(name) == ("val",) and not self._has_train:
            named_splits = frozenset()
        return Value(named_splits, frozenset({name}))
