"""The reference interpreter: modules executed in NumPy on a simulated mesh, every device at once.

What each opcode computes is in :mod:`scalify.hlo.semantics`, written once; what numbers are is in :mod:`scalify.hlo.arithmetic`. Integers
are exact in their declared width everywhere. Floats are, by domain:

``f64``       float64 whatever their declared type: the results of real arithmetic up to about 1e-15 per operation;
``declared``  rounded to their declared type;
``rational``  exact rationals; what is not rational is refused;
``interval``  bounds of the real value, every rounding accounted for;
``field``     integers modulo a prime with uninterpreted functions (:mod:`scalify.hlo.arithmetic.field` says what that may decide).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from scalify.errors import HloError, UsageError
from scalify.hlo.arithmetic.field import Field
from scalify.hlo.arithmetic.rational import Rational
from scalify.hlo.arithmetic.real import Declared, Real
from scalify.hlo.module import Module
from scalify.hlo.semantics import engine, meeting
from scalify.hlo.semantics.engine import HANDLERS
from scalify.hlo.semantics.values import Array, Budget, Kept, Machine, Meter, Place, Scope, Value

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    import numpy.typing as npt

    from scalify.hlo.arithmetic.domain import Domain
    from scalify.hlo.module import Shape

Ids: TypeAlias = "npt.NDArray[np.int64]"

__all__ = ["DOMAINS", "EVERYTHING", "HANDLERS", "Budget", "Evaluation", "Kept", "Place", "evaluate", "run"]

DOMAINS: dict[str, type[Domain]] = {kind.name: kind for kind in (Real, Declared, Rational, Field)}
DEFAULT_BUDGET = Budget()


class _Everything:
    def __contains__(self, place: object) -> bool:
        return True


EVERYTHING: Container[Place] = _Everything()
"""``keep`` for every instruction."""


@dataclass(frozen=True)
class Evaluation:
    """What an execution gave.

    ``outputs[m][k]`` is result k of module m, ``[its devices, *dims]`` in the domain's representation. ``kept`` has the values of the
    instructions asked for, one for each execution, in order. ``arbitrary`` names what the values depend on beyond the inputs and exact
    arithmetic: uninterpreted functions, a chosen order, unknown values. ``spent`` counts element operations, as the budget does.
    """

    outputs: list[list[Array]]
    domain: Domain
    kept: Mapping[Place, Sequence[Kept]] = field(default_factory=dict)
    arbitrary: frozenset[str] = frozenset()
    spent: int = 0


def evaluate(
    modules: Module | Sequence[Module],
    inputs: Sequence[Array] | Sequence[Sequence[Array]],
    devices: int | Sequence[Sequence[int]] = 1,
    *,
    domain: str | type[Domain] = "f64",
    seed: int = 0,
    keep: Container[Place] = (),
    budget: Budget = DEFAULT_BUDGET,
    label: str = "",
) -> Evaluation:
    """Executes one module on all devices, or several modules together.

    One module: ``inputs`` are its entry parameters, each ``[devices, *dims]`` in the order of device ids, and ``devices`` is their number or a
    list with the one list of device ids. Several: ``inputs[m]`` are those of module m on its devices ``devices[m]``. Inputs are host numbers, or
    arrays as the domain holds them. Any array stands for a token. Custom calls must have been expanded
    (:func:`scalify.lift.custom_calls.expand`) where a registry gives them a meaning.

    The seed chooses uninterpreted functions and unknown values. Functions are the same in every run with one seed; unknown values (random
    numbers, infeeds) differ between runs with another ``label``. ``keep`` holds the (module, computation, position) of instructions whose
    values are wanted, or is :data:`EVERYTHING`; values inside scalar computations are not kept.

    :raises HloError: an instruction that is malformed; the message names it.
    :raises OverBudget: too much memory or work, before it is spent.
    :raises Undecidable: a value that the domain cannot compute.
    :raises UsageError: inputs that do not fit the parameters, or devices that contradict a module.
    """
    programs = [modules] if isinstance(modules, Module) else list(modules)
    given: Sequence[Sequence[Array]] = [inputs] if isinstance(modules, Module) else inputs  # type: ignore[list-item,assignment]
    ids = _device_ids(devices, len(programs))
    if len(given) != len(programs):
        raise UsageError(f"inputs of {len(given)} modules for {len(programs)}")
    if isinstance(domain, str) and domain not in DOMAINS:
        raise UsageError(f"the domain is one of {', '.join(DOMAINS)}, not {domain!r}")
    arithmetic = DOMAINS[domain](seed) if isinstance(domain, str) else domain(seed)
    meter = Meter(budget)
    scopes = _scopes(programs, ids, meter, arithmetic, keep, label)
    with np.errstate(all="ignore"):
        flows = [s.call(s.machine.module.entry_name, _accept(s, x)) for s, x in zip(scopes, given, strict=True)]
        results = meeting.run(flows)
        outputs = [[_deliver(s, v) for v in (r if isinstance(r, tuple) else (r,))] for s, r in zip(scopes, results, strict=True)]
    kept = {place: values for s in scopes for place, values in s.machine.kept.items()}
    return Evaluation(outputs, arithmetic, kept, frozenset(arithmetic.arbitrary), meter.spent)


def run(
    module: Module, inputs: Sequence[Array], devices: int = 1, *, arithmetic: str = "f64", budget: Budget = DEFAULT_BUDGET
) -> list[Array]:
    """The results of every device: :func:`evaluate` of one module, the outputs alone."""
    return evaluate(module, inputs, devices, domain=arithmetic, budget=budget).outputs[0]


def _device_ids(devices: int | Sequence[Sequence[int]], modules: int) -> list[Ids]:
    given = [range(devices)] if isinstance(devices, int) else devices
    ids = [np.array(list(d), np.int64) for d in given]
    every = sorted(int(d) for part in ids for d in part)
    if len(ids) != modules or not all(part.size for part in ids):
        raise UsageError(f"devices of {len(ids)} modules for {modules}, and each needs one")
    if every != list(range(len(every))):
        raise UsageError(f"device ids must be 0 to {len(every) - 1}, once each, not {every[:8]}")
    return ids


def _scopes(
    modules: Sequence[Module],
    ids: Sequence[Ids],
    meter: Meter,
    arithmetic: Domain,
    keep: Container[Place],
    label: str,
) -> list[Scope]:
    total, sent, peers = sum(map(len, ids)), {}, _senders(modules, ids)  # type: ignore[var-annotated]
    machines = [
        Machine(module, total, meter, arithmetic, engine.evaluate, number, keep, label, sent=sent, peers=peers)
        for number, module in enumerate(modules)
    ]
    return [Scope(machine, part) for machine, part in zip(machines, ids, strict=True)]


def _senders(modules: Sequence[Module], ids: Sequence[Ids]) -> dict[int, list[int]]:
    """The devices of the one module that sends on a channel."""
    found: dict[int, list[int]] = {}
    for module, part in zip(modules, ids, strict=True) if len(modules) > 1 else ():
        for instruction in (i for c in module.computations.values() for i in c.instructions if i.opcode == "send"):
            found[instruction.attributes.get("channel_id", 0)] = part.tolist()
    return found


def _accept(scope: Scope, inputs: Sequence[Array]) -> list[Value]:
    module = scope.machine.module
    if len(inputs) != len(module.parameter_shapes):
        raise UsageError(f"{module.name}: {len(inputs)} inputs for {len(module.parameter_shapes)} parameters")
    return [_accepted(scope, n, shape, np.asarray(x)) for n, (shape, x) in enumerate(zip(module.parameter_shapes, inputs, strict=True))]


def _accepted(scope: Scope, number: int, shape: Shape, value: Array) -> Value:
    if shape.dtype == "token":
        return None
    if not shape.is_array:
        raise HloError(f"parameter {number} of type {shape} cannot be given as an array")
    if value.shape != (scope.lanes, *shape.dims):
        raise UsageError(f"input {number} has shape {value.shape}, not {(scope.lanes, *shape.dims)}")
    scope.machine.charge(value.size, value.size)
    return scope.domain.settle(scope.domain.encode(value, shape.dtype), shape.dtype)


def _deliver(scope: Scope, value: Value) -> Array:
    if isinstance(value, tuple):
        raise HloError("a result that is a tuple inside the root tuple is not supported")
    return np.zeros((scope.lanes, 0)) if value is None else np.array(value)
