"""Look-ups under conditions: an element overwritten by itself plus something, sums over digits that a condition fixes."""

from __future__ import annotations

from scalify.lift import compare, functions, product
from scalify.lift.atoms import iota, parameter
from scalify.lift.einsum import total
from scalify.lift.linear import add, combine, subtract
from scalify.lift.terms import Store, View

N, M = 4, 3


def leaf(store: Store, name: str, slots: dict[int, int], limits: tuple[int, int] | None = None) -> View:
    return parameter(store, ("parameter", name), list(slots.items()), limits)


def at(store: Store, slot: int, size: int, value: View, step: int = 1) -> View:
    """``[step * digit = value]``."""
    return compare.equals_zero(store, subtract(store, combine(store, ((step, iota(store, slot, size)),)), value))


def looked_up(store: Store, value: View, array: View, size: int = N) -> View:
    """``array`` over slot 1 at ``value``; slot 1 is bound, the result does not have it."""
    return total(store, product.times(store, at(store, 1, size, value), array), {1: size})


def test_an_element_is_overwritten_by_itself_plus_something() -> None:
    """``x[i] = x[i] - u`` is ``x - [v = i] u``."""
    store = Store()
    index, x, u = leaf(store, "i", {2: 5}, (-3, 9)), leaf(store, "x", {1: N}), leaf(store, "u", {2: 5})
    there = leaf(store, "x", {0: N})
    hit = at(store, 0, N, index)
    written = functions.select(store, hit, subtract(store, looked_up(store, index, x), u), there)
    assert written == combine(store, ((1, there), (-1, product.times(store, hit, u))))


def test_another_element_or_another_index_is_not_the_same() -> None:
    store = Store()
    index, other = leaf(store, "i", {2: 5}, (-3, 9)), leaf(store, "j", {2: 5}, (-3, 9))
    x, y, there = leaf(store, "x", {1: N}), leaf(store, "y", {1: N}), leaf(store, "x", {0: N})
    hit = at(store, 0, N, index)
    for found in (looked_up(store, other, x), looked_up(store, index, y)):
        assert functions.select(store, hit, found, there).term.kind == "fn"
    short = leaf(store, "z", {1: M})  # an index of which fewer values are inside: 0 where the position is another
    assert functions.select(store, hit, looked_up(store, index, short, M), there).term.kind == "fn"


def test_digits_of_one_position() -> None:
    """``[4 a + b = i]`` fixes both digits; ``[2 a + b = i]`` leaves a choice where b has four values."""
    for stride, same in ((N, True), (2, False)):
        store = Store()
        index = leaf(store, "i", {4: 5}, (0, 11))
        x, there = leaf(store, "x", {2: M, 3: N}), leaf(store, "x", {0: M, 1: N})

        def position(a: int, b: int, store: Store = store, stride: int = stride) -> View:
            return combine(store, ((stride, iota(store, a, M)), (1, iota(store, b, N))))

        found = total(store, product.times(store, compare.equals_zero(store, subtract(store, position(2, 3), index)), x), {2: M, 3: N})
        hit = compare.equals_zero(store, subtract(store, position(0, 1), index))
        assert (functions.select(store, hit, found, there) == there) == same


def test_conditions_in_a_circle_fix_nothing() -> None:
    """``sum [a = b][b = a] f`` has as many terms as a has values: its range is not that of one of them."""
    store = Store()
    f = leaf(store, "f", {0: N, 1: N}, (0, 1))
    both = product.all_of(store, (at(store, 0, N, iota(store, 1, N)), at(store, 1, N, iota(store, 0, N))))
    found = total(store, product.times(store, both, f), {0: N, 1: N})
    assert found.term.high is None or found.term.high >= N
    wide = leaf(store, "w", {2: 5}, (0, 2 * N))
    once = total(store, product.times(store, at(store, 0, N, wide), leaf(store, "g", {0: N}, (-2, 7))), {0: N})
    assert (once.term.low, once.term.high) == (-2, 7)


def test_a_digit_that_nothing_else_uses() -> None:
    """``sum_v [v = i] f`` is f only where i is always a value of v."""
    store = Store()
    f = leaf(store, "f", {2: 5})
    for high, same in ((N - 1, True), (N, False)):
        index = leaf(store, f"i{high}", {2: 5}, (0, high))
        assert (total(store, product.times(store, at(store, 0, N, index), f), {0: N}) == f) == same


def test_ends_behind_conditions() -> None:
    """``clamp(p x)`` is ``p x`` where p keeps x within ends that 0 lies between."""
    store = Store()
    x = leaf(store, "x", {0: N}, (-50, 50))
    inside = product.all_of(
        store, (compare.at_least_zero(store, x), compare.at_least_zero(store, add(store, combine(store, ((-1, x),)), store.constant(7))))
    )
    guarded = product.times(store, inside, x)
    assert functions.clamp(store, guarded, 0, 7) == guarded
    assert functions.clamp(store, guarded, 0, 6) != guarded
    assert functions.clamp(store, guarded, 1, 7) != guarded
