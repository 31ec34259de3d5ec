"""The laws of each domain, and that all domains compute the same programs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalify.errors import OverBudget, Undecidable
from scalify.hlo.arithmetic.field import INF, NAN, NEGATIVE_INF, Field
from scalify.hlo.arithmetic.rational import MOST_BITS, Rational
from scalify.hlo.arithmetic.real import Real
from scalify.hlo.dtypes import DTYPES
from scalify.hlo.interpret import evaluate
from tests.support.domains import check_domains
from tests.xla.programs import STEPS, program
from tests.xla.rounding import Rounded, outside

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from scalify.hlo.arithmetic.domain import Domain

    Array = npt.NDArray[Any]

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cosine",
    "cosh",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "log",
    "log-plus-one",
    "logistic",
    "negate",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
BINARY = ("add", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
SPECIAL = [math.inf, -math.inf, math.nan, 0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0]
DYADIC = st.integers(-(1 << 12), 1 << 12).map(lambda n: n / 64)
NUMBERS = st.one_of(DYADIC, st.sampled_from(SPECIAL))


def numbers(domain: Domain, values: Sequence[float]) -> Array:
    return domain.encode(np.array([values], np.float64), "f32")


def same(rational: Rational, exact: Array, field: Field, image: Array) -> bool:
    return bool((rational.digest(exact, "f32") == field.digest(image, "f32")).all())


# -- whole programs --------------------------------------------------------------------------------------------------------
def test_domains_agree_on_programs_of_every_family() -> None:
    """The prime field has the images of the rationals, and floats are near them."""
    decided: dict[str, set[str]] = {name: set() for name in STEPS}
    for seed in range(220):
        p = program(seed, 2)
        found = check_domains(p.module, p.inputs, p.devices)
        for family in p.families:
            decided[family] |= found
    # Square roots and transcendental functions are not rational; transforms of other lengths than powers of two have no roots in the field.
    undecided = {"float_unary", "float_binary", "normalisations", "solvers", "complex_numbers", "transforms"}
    assert {name for name, found in decided.items() if found != {"f64", "rational", "field"}} <= undecided


def test_rounding_every_operation_stays_within_the_balls() -> None:
    compared = 0
    for seed in range(80):
        p = program(seed, 2)
        try:
            balls = evaluate(p.module, p.inputs, p.devices, domain=Rounded)
        except Undecidable:
            continue
        if "unclear" in balls.arbitrary:
            continue
        for domain in ("f64", "declared"):
            found = evaluate(p.module, p.inputs, p.devices, domain=domain)
            for shape, ball, value in zip(p.module.output_shapes, balls.outputs[0], found.outputs[0], strict=True):
                assert not outside(shape, ball, value, f"{domain}, seed {seed},")
        compared += 1
    assert compared > 60


# -- each function in each domain ------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=6), st.lists(NUMBERS, min_size=1, max_size=6))
def test_binary_functions(left: list[float], right: list[float]) -> None:
    rational, field, real = Rational(), Field(), Real()
    pairs = [(a, b) for a in left for b in right]
    for opcode in BINARY:
        if opcode == "power":
            continue
        a, b = ([p[n] for p in pairs] for n in (0, 1))
        with np.errstate(all="ignore"):
            exact, image, near = (d.apply(opcode, [numbers(d, a), numbers(d, b)], "f32") for d in (rational, field, real))
        assert same(rational, exact, field, image), opcode
        np.testing.assert_allclose(near, exact.astype(np.float64), rtol=1e-14, err_msg=opcode)


@pytest.mark.parametrize("opcode", UNARY)
def test_unary_functions_where_they_are_rational(opcode: str) -> None:
    """The values at infinities, at 0 and 1 and of roundings are the same in all domains that know them."""
    rational, field, real = Rational(), Field(), Real()
    known = 0
    for value in SPECIAL:
        try:
            with np.errstate(all="ignore"):
                exact, image, near = (d.apply(opcode, [numbers(d, [value])], "f32") for d in (rational, field, real))
        except Undecidable:
            continue
        known += 1
        if not field.arbitrary:
            assert same(rational, exact, field, image), value
        np.testing.assert_allclose(near, exact.astype(np.float64), rtol=1e-14, err_msg=str(value))
        field.arbitrary.clear()
    assert known >= 2


@pytest.mark.parametrize("direction", ["EQ", "NE", "GE", "GT", "LE", "LT"])
def test_comparisons(direction: str) -> None:
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    for total in (False, True):
        found = [
            d.compare(direction, d.encode(a, "f32"), d.encode(b, "f32"), "f32", total=total).tolist() for d in (Real(), Rational(), Field())
        ]
        assert found[0] == found[1] == found[2]


@given(st.lists(st.one_of(DYADIC, st.sampled_from([math.inf, -math.inf, math.nan])), min_size=1, max_size=8))
def test_conversions_to_integers(values: list[float]) -> None:
    for target in ("s8", "u8", "s32", "u64", "pred"):
        found = [d.convert(numbers(d, values), "f32", target).tolist() for d in (Real(), Rational(), Field())]
        assert found[0] == found[1] == found[2], target


def test_integers_to_floats() -> None:
    x = np.array([[-(1 << 63), -1, 0, (1 << 63) - 1]])
    rational, field = Rational(), Field()
    exact = rational.convert(x, "s64", "f32")
    assert exact.tolist() == x.tolist()
    assert same(rational, exact, field, field.convert(x, "s64", "f32"))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_bits_of_rationals(dtype: str) -> None:
    known, target = Rational(), np.array([[1.5, -2.0, 0.0]])
    kind = DTYPES[dtype]
    bits = known.to_bits(known.encode(target, dtype), kind)
    assert bits.tolist() == Real().to_bits(target, kind).tolist()
    assert known.from_bits(bits, kind).tolist() == target.tolist()
    with pytest.raises(Undecidable, match="bits of a number"):
        known.to_bits(np.array([[Fraction(1, 3)]], object), kind)


# -- the rationals ---------------------------------------------------------------------------------------------------------
def test_rationals_are_exact() -> None:
    d = Rational()
    third = d.apply("divide", [numbers(d, [1.0]), numbers(d, [3.0])], "f32")
    total = d.reduce("add", np.repeat(third, 3, axis=1), (1,), "f32")
    assert third[0, 0] == Fraction(1, 3)
    assert total.tolist() == [1]
    assert d.matmul(third[None], third[None], "f32").tolist() == [[[Fraction(1, 9)]]]
    roots = d.apply("sqrt", [np.array([[Fraction(4, 9), 16]], object)], "f32")
    assert roots.tolist() == [[Fraction(2, 3), 4]]


@pytest.mark.parametrize("opcode", ["exponential", "log", "sine", "sqrt", "logistic", "tanh", "cbrt"])
def test_what_is_not_rational_is_refused(opcode: str) -> None:
    d = Rational()
    with pytest.raises(Undecidable, match="rational"):
        d.apply(opcode, [numbers(d, [2.0])], "f32")


def test_digits_are_bounded() -> None:
    d = Rational()

    def squared(times: int) -> Array:
        x = numbers(d, [3.0])
        for _ in range(times):
            x = d.apply("multiply", [x, x], "f32")
        return x

    with pytest.raises(OverBudget, match="binary digits"):
        squared(MOST_BITS)
    with pytest.raises(OverBudget, match="binary digits"):
        d.apply("power", [numbers(d, [3.0]), numbers(d, [1e12])], "f32")


# -- the field -------------------------------------------------------------------------------------------------------------
def elements(field: Field, count: int, name: str = "x") -> Array:
    """Elements that are no small numbers."""
    return field.uninterpreted(name, np.arange(count, dtype=np.uint64)[None])


@pytest.mark.parametrize("opcode", ["exponential", "log", "sine", "cosine", "sqrt", "erf", "cbrt", "floor", "acos"])
def test_uninterpreted_functions_respect_equality(opcode: str) -> None:
    field = Field(7)
    x = elements(field, 50)
    shuffled = np.random.default_rng(0).permutation(50)
    once = field.apply(opcode, [x], "f32")
    assert (field.apply(opcode, [x[:, shuffled]], "f32") == once[:, shuffled]).all()
    assert (Field(7).apply(opcode, [x], "f32") == once).all()
    assert opcode in field.arbitrary
    assert len(set(once[0].tolist())) == 50
    others = [Field(8).apply(opcode, [x], "f32"), field.apply("atan", [x], "f32"), x]
    assert all(not np.isin(once, other).any() for other in others)


def test_functions_that_others_define_stay_so() -> None:
    field = Field(1)
    x, one = elements(field, 20), field.number(1, "f32")

    def f(opcode: str, *operands: Array) -> Array:
        return field.apply(opcode, operands, "f32")

    assert (f("multiply", f("rsqrt", x), f("sqrt", x)) == one).all()
    assert (f("multiply", f("logistic", x), f("add", one, f("exponential", f("negate", x)))) == one).all()
    assert (f("multiply", f("tan", x), f("cosine", x)) == f("sine", x)).all()
    assert (f("add", f("sinh", x), f("cosh", x)) == f("exponential", x)).all()
    assert (f("power", x, field.number(3, "f32")) == f("multiply", x, f("multiply", x, x))).all()
    assert (f("multiply", x, f("power", x, field.number(-1, "f32"))) == one).all()
    assert (f("power", x, field.number(0.5, "f32")) == f("sqrt", x)).all()
    assert (f("log-plus-one", x) == f("log", f("add", x, one))).all()


def test_extremes_are_a_lattice_and_sorting_sorts() -> None:
    field = Field(3)
    x = np.concatenate([elements(field, 20), numbers(field, SPECIAL), numbers(field, [1e30, -1e30])], axis=1)[0]
    keys = field.order_key(x, "f32")
    assert len(set(keys.tolist())) == x.size
    a, b, c = x[:, None, None], x[None, :, None], x[None, None, :]
    for opcode in ("maximum", "minimum"):

        def f(p: Array, q: Array, opcode: str = opcode) -> Array:
            return field.apply(opcode, [p, q], "f32")

        assert (f(x, x) == x).all()
        assert (f(a, b) == f(b, a)).all()
        assert (f(f(a, b), c) == f(a, f(b, c))).all()
        assert field.reduce(opcode, x[None, keys != keys.max()], (1,), "f32") == x[np.argsort(keys)[-2 if opcode == "maximum" else 0]]
    ordered = x[np.argsort(keys)]
    assert ordered[0] == NEGATIVE_INF
    assert ordered[-2:].tolist() == [INF, NAN]
    assert (ordered[1], ordered[-3]) == tuple(numbers(field, [-1e30, 1e30])[0])


def test_only_ring_operations_leave_nothing_arbitrary() -> None:
    field = Field()
    x = numbers(field, [1.0, 2.5, -3.0])
    field.apply("divide", [field.apply("maximum", [x, x], "f32"), x], "f32")
    assert not field.arbitrary
    field.apply("maximum", [field.apply("divide", [field.number(1, "f32"), field.number(3, "f32")], "f32"), x], "f32")
    assert field.arbitrary == {"order"}


@pytest.mark.parametrize("kind", [Rational, Field])
def test_roots_of_unity(kind: Callable[[], Domain]) -> None:
    domain = kind()
    for order in (1, 2, 4) if kind is Rational else (1, 2, 3, 5, 8, 12, 64):
        roots = domain.root_of_unity(order, "c64")
        power = roots[1 % order][None]
        for _ in range(order - 1):
            power = domain.apply("multiply", [power, roots[1 % order][None]], "c64")
        assert domain.compare("EQ", power, roots[:1], "c64").all()
        assert not domain.compare("EQ", roots[1:], roots[:1], "c64").any()
    with pytest.raises(Undecidable, match="roots of unity"):
        domain.root_of_unity(7, "c64")


# -- unknown values --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8", "u32", "pred", "c64"])
def test_unknown_values_are_the_same_in_every_domain(dtype: str) -> None:
    words = np.arange(64, dtype=np.uint64)[None] * np.uint64(0x9E3779B97F4A7C15)
    found = [d.digest(d.unknown(words, dtype), dtype) for d in (Rational(), Field())]
    assert found[0].tolist() == found[1].tolist()
    assert np.unique(found[0]).size > 1


def test_opaque_functions_respect_equality() -> None:
    for domain in (Real(5), Rational(5), Field(5)):
        x = domain.encode(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]), "f32")
        place = np.array([[1], [1], [1]], np.int32)
        first = domain.opaque("f", [(x, "f32"), (place, "s32")], (4,), "f32")
        assert (first[0] == first[2]).all()
        assert (first[0] != first[1]).all()
        assert (domain.opaque("f", [(x, "f32"), (place + 1, "s32")], (4,), "f32") != first).all()
        assert (domain.opaque("g", [(x, "f32"), (place, "s32")], (4,), "f32") != first).all()
        assert domain.opaque("f", [(x, "f32")], (4,), "s32").dtype == np.int32
        assert domain.arbitrary >= {"f", "g"}


def test_opaque_functions_of_floats_keep_rounding_errors_small() -> None:
    domain = Real()
    x = np.random.default_rng(0).standard_normal((1, 64))
    found = [domain.opaque("f", [(x + error, "f32")], (8,), "f32") for error in (0.0, 1e-12)]
    assert np.abs(found[0] - found[1]).max() < 1e-10
