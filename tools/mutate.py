"""Mutation run: change one place of the source at a time and see whether the tests of its room notice.

    python tools/mutate.py --sample 100 --seed 1 evidence verdict stats rules metrics

A mutant that no test kills is printed with its file, line and change: it is either a test that is missing or a change that means
the same. Nothing on disk is touched: every mutant lives in a forked process whose import of that one module is replaced. Tests
that start other processes do not see it. Not part of CI; it takes minutes to hours.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "adjudge"
PROTOCOLS = {  # the tests that hold rules and numbers, not all of the room
    "anomaly": ("test_protocol.py", "test_harness.py"),
    "consistency": ("test_cases.py", "test_run.py", "test_raters.py"),
    "flight": ("test_cases.py", "test_against_reference.py"),
    "gui": ("test_metrics.py", "test_objects.py", "test_run.py"),
    "stability": ("test_stability.py",),
    "triage": ("test_cases.py", "test_measures.py"),
}
_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip

SAME = (  # changes that mean the same, by file, a part of the source line, and the change
    ("*", "@dataclass(frozen=True)", "True → False", "nobody assigns to it; the type checker holds that"),
    ("verdict/agent.py", "_NEAR = 1e6", "", "where digits end is a choice; one more changes nothing"),
    ("verdict/agent.py", "_DIGITS = 9", "", "the same"),
    ("verdict/agent.py", "else over[:0]", "", "there is nothing to take a part of"),
    ("verdict/agent.py", "np.full(worst.size, -1)", "1 → 2", "any negative number is no place"),
    ("verdict/agent.py", "np.where(observed > high", "", "on a limit the excess is 0 either way"),
    ("verdict/agent.py", "inside = np.isnan(limit)", "LtE → Lt", "on a limit the excess is 0 either way"),
    ("verdict/agent.py", "inside = np.isnan(limit)", "GtE → Gt", "on a limit the excess is 0 either way"),
    ("evidence/rule.py", "slice(int(positions[0])", "", "a slice is only faster than its positions"),
)
"""What `SAME` lists is run all the same, and not printed as a survivor."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module, and the tests that should notice it."""

    path: Path
    line: int
    change: str
    code: str
    tests: tuple[str, ...]


class _Changed(ast.NodeTransformer):
    """Change the n-th place that can be changed; `seen` counts them."""

    def __init__(self, target: int) -> None:
        self.target, self.seen, self.line, self.change = target, -1, 0, ""

    def _here(self, node: ast.AST, change: str) -> bool:
        self.seen += 1
        if self.seen != self.target:
            return False
        self.line, self.change = getattr(node, "lineno", 0), change
        return True

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        other = _COMPARISONS.get(type(node.ops[0]))
        if other is not None and self._here(node, f"{type(node.ops[0]).__name__} → {other.__name__}"):
            node.ops[0] = other()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = _ARITHMETIC.get(type(node.op))
        if isinstance(node.op, ast.BitOr) and _is_type(node):
            return node
        if other is not None and self._here(node, f"{type(node.op).__name__} → {other.__name__}"):
            node.op = other()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        if self._here(node, f"{type(node.op).__name__} → {other.__name__}"):
            node.op = other()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert) and self._here(
            node, f"{type(node.op).__name__} dropped"
        ):
            return node.operand
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if isinstance(value, bool):
            if self._here(node, f"{value} → {not value}"):
                return ast.copy_location(ast.Constant(not value), node)
        elif isinstance(value, int | float) and self._here(node, f"{value} → {value + 1}"):
            return ast.copy_location(ast.Constant(value + 1), node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def _is_type(node: ast.BinOp) -> bool:
    """Whether `a | b` is a union of types."""
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return any(isinstance(part, ast.Constant) and part.value is None for part in ast.walk(node)) or any(
        name in {"int", "str", "float", "bytes", "list", "tuple", "dict"} for name in names
    )


def mutants(path: Path, tests: tuple[str, ...]) -> Iterator[Mutant]:
    """Every mutant of one module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number = 0
    while True:
        changed = _Changed(number)
        made = changed.visit(copy.deepcopy(tree))
        if not changed.change:
            return
        yield Mutant(path, changed.line, changed.change, ast.unparse(ast.fix_missing_locations(made)), tests)
        number += 1


def modules(rooms: list[str]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The modules of the rooms asked for, each with its tests: the mirrored file, or else the folder."""
    for room in rooms:
        if room in {"rules", "metrics"}:
            for protocol, files in PROTOCOLS.items():
                path = SOURCE / "protocols" / protocol / f"{room}.py"
                if path.is_file():
                    yield path, tuple(f"tests/{protocol}/{file}" for file in files)
            continue
        chosen = SOURCE / room
        for path in [chosen] if chosen.is_file() else sorted(chosen.glob("*.py")):
            folder = ROOT / "tests" / path.parent.name
            mirrored = folder / f"test_{path.stem}.py"
            yield path, ((mirrored if mirrored.is_file() else folder).relative_to(ROOT).as_posix(),)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module its mutated source."""

    def __init__(self, name: str, code: str) -> None:
        self.name, self.code = name, code

    def find_spec(self, fullname: str, path: object, target: object = None) -> object:
        del path, target
        return importlib.util.spec_from_loader(fullname, self) if fullname == self.name else None

    def exec_module(self, module: object) -> None:
        exec(compile(self.code, f"<mutant of {self.name}>", "exec"), vars(module))  # noqa: S102 -- our own source


def killed(mutant: Mutant, seconds: float) -> bool:
    """Whether a test fails, or does not end, with the mutant in place of its module."""
    child = os.fork()
    if child == 0:
        _become(mutant)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _become(mutant: Mutant) -> None:
    """Run the tests in this process and leave with their exit code."""
    import pytest

    code = 1
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        name = ".".join(("adjudge", *mutant.path.relative_to(SOURCE).with_suffix("").parts))
        sys.meta_path.insert(0, _Finder(name, mutant.code))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not realdata"]
        code = int(pytest.main([*options, *mutant.tests]))
    finally:
        os._exit(code)


def _means_the_same(mutant: Mutant) -> bool:
    name = mutant.path.relative_to(SOURCE).as_posix()
    line = mutant.path.read_text(encoding="utf-8").splitlines()[mutant.line - 1]
    return any(file in {"*", name} and part in line and change in mutant.change for file, part, change, _ in SAME)


def main() -> None:
    """Sample, run, list the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "rooms", nargs="+", help="evidence, verdict, verdict/gates.py …, or rules and metrics of every protocol"
    )
    parser.add_argument("--sample", type=int, default=100, help="how many mutants [100]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="after which a mutant counts as killed [120]")
    asked = parser.parse_args()
    os.chdir(ROOT)
    for heavy in (
        "numpy",
        "pyarrow",
        "pyarrow.parquet",
        "pyarrow.compute",
        "scipy.stats",
        "msgspec",
        "pytest",
    ):
        importlib.import_module(heavy)
    every = [mutant for path, tests in modules(asked.rooms) for mutant in mutants(path, tests)]
    chosen = random.Random(asked.seed).sample(every, min(asked.sample, len(every)))  # noqa: S311
    for tests in sorted({mutant.tests for mutant in chosen}):
        whole = next(mutant for mutant in chosen if mutant.tests == tests)
        if killed(replace(whole, code=whole.path.read_text(encoding="utf-8")), 10 * asked.seconds):
            print(f"{' '.join(tests)}: left out, for they do not pass without a mutant", flush=True)  # noqa: T201
            chosen = [mutant for mutant in chosen if mutant.tests != tests]
    survivors = same = 0
    for number, mutant in enumerate(sorted(chosen, key=lambda each: (str(each.path), each.line)), 1):
        if not killed(mutant, asked.seconds):
            if _means_the_same(mutant):
                same += 1
                continue
            survivors += 1
            print(f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {mutant.change}", flush=True)  # noqa: T201
        print(f"\r{number}/{len(chosen)}", end="", file=sys.stderr, flush=True)  # noqa: T201
    known = f", and {same} that mean the same" if same else ""
    print(f"{survivors} of {len(chosen)} sampled mutants survive{known} ({len(every)} in all)")  # noqa: T201


if __name__ == "__main__":
    main()
