"""What all shape rules share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NoReturn

from scalify.errors import HloError
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.module import Instruction, Module, Shape

Rule = Callable[[Instruction, Sequence[Shape], Module], Shape | None]

PRED = Shape("pred")
TOKEN = Shape("token")
U32 = Shape("u32")


def fail(message: str) -> NoReturn:
    raise HloError(message)


def tuple_of(shapes: Iterable[Shape]) -> Shape:
    return Shape("tuple", elements=tuple(shapes))


def bundle(instruction: Instruction, shapes: Sequence[Shape]) -> Shape:
    """The result of an op that works on several values: a tuple, or the bare shape when there is only one."""
    if instruction.shape.is_tuple or len(shapes) != 1:
        return tuple_of(shapes)
    return shapes[0]


def agree(left: Shape, right: Shape) -> bool:
    """Equal up to layout and up to which dimensions are dynamic."""
    if left is right:
        return True
    if not (left.elements or right.elements):
        return left.dtype == right.dtype and left.dims == right.dims
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        if a is b:
            continue
        if a.dtype != b.dtype or a.dims != b.dims or len(a.elements) != len(b.elements):
            return False
        pending.extend(zip(a.elements, b.elements, strict=True))
    return True


def kind(shape: Shape) -> str:
    """``f``, ``s``, ``u``, ``pred`` or ``c``; fails for anything but an array."""
    dtype = DTYPES.get(shape.dtype)
    if dtype is None:
        fail(f"needs an array operand, got {shape}")
    return dtype.kind


def same_type(left: Shape, right: Shape) -> bool:
    """Equal element types, or both floating (XLA ignores the precision of combiners' and padding values)."""
    return left.dtype == right.dtype or (kind(left) == "f" and kind(right) == "f")


def array(shape: Shape) -> Shape:
    if not shape.is_array:
        fail(f"needs an array operand, got {shape}")
    return shape


def scalar(shape: Shape, what: str) -> Shape:
    if not shape.is_array or shape.dims:
        fail(f"{what} must be a scalar, got {shape}")
    return shape


def integer(shape: Shape, what: str) -> Shape:
    if kind(shape) not in ("s", "u"):
        fail(f"{what} must be integers, got {shape}")
    return shape


def dimension(value: int, rank: int, what: str = "dimension") -> int:
    if not 0 <= value < rank:
        fail(f"{what} {value} is out of range for rank {rank}")
    return value


def distinct(values: Collection[int], rank: int, what: str) -> None:
    if not values:
        return
    if min(values) < 0 or max(values) >= rank:
        fail(f"{what} {tuple(values)} is out of range for rank {rank}")
    if len(set(values)) != len(values):
        fail(f"{what} names a dimension twice: {tuple(values)}")


def increasing(values: Sequence[int], rank: int, what: str) -> None:
    distinct(values, rank, what)
    if list(values) != sorted(values):
        fail(f"{what} must be in increasing order: {tuple(values)}")


def without(dims: Sequence[int], removed: Collection[int]) -> tuple[int, ...]:
    return tuple([size for d, size in enumerate(dims) if d not in removed])


def replaced(dims: Sequence[int], d: int, size: int) -> tuple[int, ...]:
    return (*dims[:d], size, *dims[d + 1 :])


def signature(module: Module, name: str) -> tuple[tuple[Shape, ...], Shape]:
    """Parameter shapes and result shape of a computation."""
    computation = module.computations.get(name)
    if computation is None:
        fail(f"calls {name}, which is not in the module")
    instructions = computation.instructions
    return tuple(instructions[p].shape for p in computation.parameters), instructions[computation.root].shape


def check_call(module: Module, name: str, arguments: Sequence[Shape]) -> Shape:
    """Parameters of ``name`` agree with ``arguments``; returns the result's shape."""
    parameters, result = signature(module, name)
    if len(parameters) != len(arguments):
        fail(f"{name} has {len(parameters)} parameters, called with {len(arguments)} operands")
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        if not agree(parameter, argument):
            fail(f"parameter {number} of {name} is {parameter}, called with {argument}")
    return result


def check_reducer(module: Module, name: str, values: Sequence[Shape]) -> tuple[str, ...]:
    """``name`` combines two tuples of scalars of the types of ``values``; returns the element types of its results."""
    parameters, result = signature(module, name)
    results = result.elements if result.is_tuple else (result,)
    if len(parameters) != 2 * len(values) or len(results) != len(values):
        fail(f"reducer {name} has {len(parameters)} parameters and {len(results)} results for {len(values)} values")
    for scalars in (parameters[: len(values)], parameters[len(values) :], results):
        for got, value in zip(scalars, values, strict=True):
            if scalar(got, f"every parameter and result of reducer {name}") is not value and not same_type(got, value):
                fail(f"reducer {name} works on {got.dtype}, the values are {value.dtype}")
    return tuple(shape.dtype for shape in results)
