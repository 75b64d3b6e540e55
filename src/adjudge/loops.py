"""Compiled loops: Numba turns them into machine code once, and later processes load that code without Numba.

Importing Numba and waking its compiler takes most of a second of CPU; loading finished code takes a few hundredths. A loop
gets arrays and numbers, allocates nothing (what it fills and what it needs for itself are arguments) and returns nothing
or one number. Plain functions that it calls become part of it, those of `instructions` as the machine has them. The code is
kept beside the module's bytecode, or in the user's cache folder, under a name that depends on everything it was made from.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import json
import os
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adjudge.instructions import machine_instructions

Kind = str  # of an argument: "u1.2C" is a contiguous array of bytes in two dimensions, "i8" a whole number
_RETURNS = {
    "none": None,
    "bool": ctypes.c_bool,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


@functools.cache
def available() -> bool:
    """Whether compiled loops can be had (the `fast` extra)."""
    return importlib.util.find_spec("numba") is not None


class Loop:
    """A function that runs as machine code, made for the kinds of arguments it is called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._codes: dict[tuple[Kind, ...], _Native] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        kinds = tuple(map(_kind, arguments))
        native = self._codes.get(kinds)
        if native is None:
            native = self._codes[kinds] = _Native(_code(self.function, kinds))
        return native(arguments)


def _kind(argument: Any) -> Kind:
    if isinstance(argument, np.ndarray):
        layout = "C" if argument.flags.c_contiguous else "A"
        return f"{argument.dtype.str[1:]}.{argument.ndim}{layout}"
    return "f8" if isinstance(argument, float) else "i8"


@dataclass(frozen=True)
class _Code:
    """Machine code: the name of the function in it, what it returns, and the object file."""

    name: str
    returns: str
    data: bytes


class _Native:
    """Loaded machine code. Numba's own functions are called: where to put result and error, then the arguments.

    An array is passed as seven numbers or more: two owners, which we have none of, how many items of what size, where,
    and for each dimension its length and stride.
    """

    def __init__(self, code: _Code) -> None:
        self._engine = _engine(code.data)
        address = self._engine.get_function_address(code.name)
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32)(address)
        self._returns = _RETURNS[code.returns]
        self._ready = False

    def __call__(self, arguments: Sequence[Any]) -> Any:
        result = (self._returns or ctypes.c_int64)()
        error = ctypes.c_void_p()
        flat: list[Any] = [ctypes.byref(result), ctypes.byref(error)]
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                flat += (0, 0, argument.size, argument.itemsize, argument.__array_interface__["data"][0])
                flat += argument.shape
                flat += argument.strides
            else:
                flat.append(float(argument) if isinstance(argument, float) else int(argument))
        if not self._ready:  # all calls have arguments of the same kinds
            numbers = [ctypes.c_double if isinstance(number, float) else ctypes.c_int64 for number in flat[2:]]
            self._function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *numbers]
            self._ready = True
        if self._function(*flat):
            raise RuntimeError("a compiled loop failed")
        return None if self._returns is None else result.value


def _code(function: Callable[..., Any], kinds: tuple[Kind, ...]) -> _Code:
    """The machine code of a function, from the cache where it is there."""
    seal = hashlib.sha256("\n".join((_machine(), *kinds)).encode())
    for piece in (*_ingredients(function, set()), *_bytecode(machine_instructions.__code__, 1)):
        seal.update(piece)
    name = f"{function.__module__}.{function.__name__}-{seal.hexdigest()[:32]}.loop"
    folders = [Path(function.__code__.co_filename).parent / "__pycache__", _user_cache()]
    for folder in folders:
        try:
            head, _, data = (folder / name).read_bytes().partition(b"\n")
            said = json.loads(head)
            if said.pop("sha256") == hashlib.sha256(data).hexdigest():  # damaged machine code would end the process
                return _Code(**said, data=data)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
    made = _compiled(function, kinds)
    seal_of_data = hashlib.sha256(made.data).hexdigest()
    head = json.dumps({"name": made.name, "returns": made.returns, "sha256": seal_of_data}).encode()
    for folder in folders:
        if _kept(folder / name, head + b"\n" + made.data):
            break
    return made


def _ingredients(function: Callable[..., Any], seen: set[Callable[..., Any]]) -> Iterator[bytes]:
    """All that the machine code depends on: the bytecode of the function and of those it calls, and their constants."""
    if function in seen:
        return
    seen.add(function)
    yield from _bytecode(function.__code__, 1)
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Loop | types.FunctionType):
            yield from _ingredients(value.function if isinstance(value, Loop) else value, seen)
        elif isinstance(value, np.ndarray):
            yield value.tobytes()
        elif not isinstance(value, types.ModuleType | None):
            yield repr(value).encode()


def _bytecode(code: types.CodeType, first: int) -> Iterator[bytes]:
    """What a function does, and those within it, with its constants from the `first` on: one may be its docstring."""
    inner = [value for value in code.co_consts if isinstance(value, types.CodeType)]
    values = [value for value in code.co_consts[first:] if not isinstance(value, types.CodeType)]
    yield code.co_code
    yield repr((code.co_name, values, code.co_names, code.co_varnames)).encode()
    for own in inner:
        yield from _bytecode(own, 0)


def _compiled(function: Callable[..., Any], kinds: tuple[Kind, ...]) -> _Code:
    """Compile with Numba, and have LLVM write the object file."""
    import llvmlite.binding as llvm
    import numba

    njit: Any = numba.njit  # its stub does not know all options
    ready = machine_instructions()

    def prepared(own: Callable[..., Any], **options: Any) -> Any:
        """The function for Numba, and with it those that it calls."""
        known = dict(own.__globals__)
        for name in own.__code__.co_names:
            value = known.get(name)
            inner = value.function if isinstance(value, Loop) else value
            if isinstance(inner, types.FunctionType):
                if inner not in ready:
                    ready[inner] = prepared(inner, **({} if isinstance(value, Loop) else {"inline": "always"}))
                known[name] = ready[inner]
        return njit(_nrt=False, **options)(types.FunctionType(own.__code__, known, own.__name__))

    dispatcher = prepared(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    signature = tuple(_numba_type(kind) for kind in kinds)
    dispatcher.compile(signature)
    made = dispatcher.overloads[signature]
    module = llvm.parse_assembly(dispatcher.inspect_llvm(signature))
    outside = [own.name for own in module.functions if own.is_declaration and not own.name.startswith("llvm.")]
    if outside or str(made.signature.return_type) not in _RETURNS:
        what = f"calls {', '.join(outside)}" if outside else f"returns {made.signature.return_type}"
        raise TypeError(f"{function.__name__} {what}; a loop allocates nothing and returns at most a number")
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    return _Code(made.fndesc.llvm_func_name, str(made.signature.return_type), target.emit_object(module))


def _numba_type(kind: Kind) -> Any:
    import numba

    item, _, shape = kind.partition(".")
    scalar = numba.from_dtype(np.dtype(item))
    return numba.types.Array(scalar, int(shape[:-1]), "C" if shape[-1] == "C" else "A") if shape else scalar


@functools.cache
def _machine() -> str:
    """What runs the code, and what made it."""
    from importlib.metadata import version

    import llvmlite.binding as llvm

    return (
        f"{version('numba')} {version('llvmlite')} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    )


def _engine(data: bytes) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "adjudge"


def _kept(path: Path, data: bytes) -> bool:
    """Write a file whole or not at all; whether it could be written."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        return False
    return True
