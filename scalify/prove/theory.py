"""What every e-graph starts with: sorts, the relations that conditions are derived from, and how rows become nodes.

An expression is a function of its index variables with real values; an e-class holds expressions that are equal for every value of the variables.
``fv`` is a set of variables outside of which the value does not vary: of two equal expressions the value varies over neither's complement, so
the sets of one e-class intersect. All relations are upward closed: they only ever gain facts, each true of the value itself.

``form-Add`` (``form-Mul``, ``form-Max``) is one way to write a class as a sum: sums that have the class as an operand take over that one only, so
that a class with many forms does not multiply the forms of all that use it; it is taken when nothing is left to simplify. ``pole`` is which of x and -x conditions on either are written with.
"""

from __future__ import annotations

GOAL = "goal reached"
CONTRADICTION = "contradiction"
UNDEFINED = "undefined"  #: a value that no input defines, such as 1/0: the laws of real numbers say nothing of it
RULESETS = ("load", "index", "demand", "facts", "simplify", "form", "expand", "assume")

SORTS = """
(sort E)
(sort M (MultiSet E))
(sort Names (Set String))
(constructor Num (BigRat) E)
(constructor Leaf (String) E)
(constructor AtVar (E String) E)
(constructor AtConst (E i64) E)
(constructor Iota (String) E)
(constructor Add (M) E)
(constructor Mul (M) E)
(constructor Max (M) E)
(constructor Scale (BigRat E) E)
(constructor Inv (E) E)
(constructor Ge0 (E) E)
(constructor Eq0 (E) E)
(constructor Fn (String E) E)
(constructor App (E E) E)
(constructor Select (E E E) E)
(constructor Total (Names E) E)
(constructor Greatest (Names E) E)
(constructor Times (M E) E)
(constructor Diff (E E) E)
(constructor SubVar (String String E) E)
(constructor SubConst (String i64 E) E)
(sort UnaryFn (UnstableFn (E) E))
(sort MemberFn (UnstableFn (M E) i64))
(constructor Neg (E) E)
(constructor Before (E) E)
(function member (M E) i64 :merge new)
(relation form-Add (E M))
(relation stale-Add (M))
(relation form-Mul (E M))
(relation stale-Mul (M))
(relation form-Max (E M))
(relation stale-Max (M))
(function pole (M) E :merge old)
(function fv (E) Names :merge (set-intersect old new))
(function fvm (M) Names :merge (set-intersect old new))
(function low (E) BigRat :merge (max old new))
(function high (E) BigRat :merge (min old new))
(function lowm (M) BigRat :merge (max old new))
(function highm (M) BigRat :merge (min old new))
(function size (String) i64 :merge new)
(relation need (M))
(relation chain (M E M))
(relation positive (E))
(relation nonneg (E))
(relation nonzero (E))
(relation negative (E))
(relation boolean (E))
(relation integer (E))
(relation all-positive (M))
(relation all-nonneg (M))
(relation all-nonzero (M))
(relation all-negative (M))
(relation all-boolean (M))
(relation all-integer (M))
(relation instance (E String i64 E))
(relation goal (E E))
(relation selects (E String i64))
(relation equates (E String String))
(relation constant-index (i64 BigRat BigRat))
(relation contradiction ())
(relation undefined ())
"""

#: rows of the input files: name and columns
ROWS = {
    "row-num": "i64 String String",
    "row-leaf": "i64 String",
    "row-at-var": "i64 i64 String",
    "row-at-const": "i64 i64 i64",
    "row-iota": "i64 String",
    "row-list": "i64 i64 i64",
    "row-add": "i64 i64",
    "row-mul": "i64 i64",
    "row-max": "i64 i64",
    "row-scale": "i64 String String i64",
    "row-inv": "i64 i64",
    "row-ge0": "i64 i64",
    "row-eq0": "i64 i64",
    "row-fn": "i64 String i64",
    "row-app": "i64 i64 i64",
    "row-select": "i64 i64 i64 i64",
    "row-total": "i64 i64 i64",
    "row-greatest": "i64 i64 i64",
    "row-name": "i64 i64 String",
    "row-free": "i64 i64",
    "row-fact": "i64 String",
    "row-low": "i64 String String",
    "row-high": "i64 String String",
    "row-size": "String i64",
    "row-instance": "i64 String i64 i64",
    "row-index": "i64",
    "row-goal": "i64 i64",
}

LOAD = """
(function node (i64) E :merge new)
(function listed (i64) M :merge new)
(function named (i64) Names :merge new)
((row-num i p q)) => (set (node i) (Num (bigrat (from-string p) (from-string q))))
((row-leaf i s)) => (set (node i) (Leaf s))
((row-at-var i c s) (= x (node c))) => (set (node i) (AtVar x s))
((row-at-const i c k) (= x (node c))) => (set (node i) (AtConst x k))
((row-iota i s)) => (set (node i) (Iota s))
((row-list i c r) (< r 0) (= x (node c))) => (set (listed i) (multiset-of x))
((row-list i c r) (= x (node c)) (= ms (listed r))) => (set (listed i) (multiset-insert ms x))
((row-add i l) (= ms (listed l))) => (set (node i) (Add ms))
((row-mul i l) (= ms (listed l))) => (set (node i) (Mul ms))
((row-max i l) (= ms (listed l))) => (set (node i) (Max ms))
((row-scale i p q c) (= x (node c))) => (set (node i) (Scale (bigrat (from-string p) (from-string q)) x))
((row-inv i c) (= x (node c))) => (set (node i) (Inv x))
((row-ge0 i c) (= x (node c))) => (set (node i) (Ge0 x))
((row-eq0 i c) (= x (node c))) => (set (node i) (Eq0 x))
((row-fn i s c) (= x (node c))) => (set (node i) (Fn s x))
((row-app i a b) (= x (node a)) (= y (node b))) => (set (node i) (App x y))
((row-select i a b c) (= x (node a)) (= y (node b)) (= z (node c))) => (set (node i) (Select x y z))
((row-total i v c) (= vs (named v)) (= x (node c))) => (set (node i) (Total vs x))
((row-greatest i v c) (= vs (named v)) (= x (node c))) => (set (node i) (Greatest vs x))
((row-name i r s) (< r 0)) => (set (named i) (set-of s))
((row-name i r s) (= vs (named r))) => (set (named i) (set-insert vs s))
((row-free i v) (< v 0) (= x (node i))) => (set (fv x) (set-empty))
((row-free i v) (= x (node i)) (= vs (named v))) => (set (fv x) vs)
((row-fact i "positive") (= x (node i))) => (positive x)
((row-fact i "integer") (= x (node i))) => (integer x)
((row-fact i "boolean") (= x (node i))) => (boolean x)
((row-low i p q) (= x (node i))) => (set (low x) (bigrat (from-string p) (from-string q)))
((row-high i p q) (= x (node i))) => (set (high x) (bigrat (from-string p) (from-string q)))
((row-size s k)) => (set (size s) k)
((row-instance a s k b) (= x (node a)) (= y (node b))) => (instance x s k y)
((row-index k)) => (constant-index k (bigrat (bigint k) (bigint 1)) (bigrat (bigint (- 0 k)) (bigint 1)))
((row-goal a b) (= x (node a)) (= y (node b))) => (goal x y)
"""

INDEX = """
((= s (Add ms))) => (unstable-multiset-fill-index ms (unstable-fn "member")) (need ms)
((= s (Mul ms))) => (unstable-multiset-fill-index ms (unstable-fn "member")) (need ms)
((= s (Max ms))) => (unstable-multiset-fill-index ms (unstable-fn "member")) (need ms)
((need ms) (> (multiset-length ms) 0) (= x (multiset-pick ms)) (= r (multiset-remove ms x))) => (chain ms x r) (need r)
((= s (Times ms x))) => (union s (Mul (multiset-insert ms x)))
((= s (Neg x))) => (union s (Scale (bigrat (from-string "-1") (from-string "1")) x))
((= s (Before x))) => (union s (Add (multiset-of (Num (bigrat (from-string "-1") (from-string "1"))) (Scale (bigrat (from-string "-1") (from-string "1")) x))))
((= s (Ge0 x)) (integer x)) => (set (pole (multiset-of x (Before x))) x)
((= s (Ge0 x))) => (set (pole (multiset-of x (Neg x))) x)
((= s (Diff x y))) => (union s (Add (multiset-of x (Scale (bigrat (from-string "-1") (from-string "1")) y))))
"""

FORMS = """
((= s (Add ms)) (> (multiset-length ms) 1) (multiset-not-contains ms s)) => (form-Add s ms)
((= s (Mul ms)) (> (multiset-length ms) 1) (multiset-not-contains ms s)) => (form-Mul s ms)
((= s (Max ms)) (> (multiset-length ms) 1) (multiset-not-contains ms s)) => (form-Max s ms)
"""

_ZERO = '(bigrat (from-string "0") (from-string "1"))'
_MINUS = '(bigrat (from-string "-1") (from-string "1"))'
_ONE = '(bigrat (from-string "1") (from-string "1"))'

FACTS = f"""
((= s (Num q)) (> q {_ZERO})) => (positive s)
((= s (Num q))) => (set (low s) q) (set (high s) q) (set (fv s) (set-empty))
((= s (Num q)) (= (denom q) (bigint 1))) => (integer s)
((form-Add s ms) (stale-Add ms)) => (delete (form-Add s ms))
((form-Mul s ms) (stale-Mul ms)) => (delete (form-Mul s ms))
((form-Max s ms) (stale-Max ms)) => (delete (form-Max s ms))
((= s (Num q)) (form-Add s ms)) => (delete (form-Add s ms))
((= s (Num q)) (form-Mul s ms)) => (delete (form-Mul s ms))
((= q (low s)) (> q {_ZERO})) => (positive s)
((= q (low s)) (>= q {_ZERO})) => (nonneg s)
((= q (high s)) (< q {_ZERO})) => (negative s)
((negative s)) => (nonzero s)
((= s (Scale q x)) (positive x) (< q {_ZERO})) => (negative s)
((= s (Scale q x)) (negative x) (< q {_ZERO})) => (positive s)
((= s (Num q)) (< q {_ZERO})) => (negative s)
((positive s)) => (nonneg s) (nonzero s)
((boolean s)) => (integer s) (set (low s) {_ZERO}) (set (high s) {_ONE})
((= s (Fn "exp" x))) => (positive s)
((= s (Fn "logistic" x))) => (positive s)
((= s (Fn "abs" x))) => (nonneg s)
((= s (Fn "sqrt" x)) (positive x)) => (positive s)
((= s (Fn "sqrt" x)) (nonneg x)) => (nonneg s)
((= s (Inv x)) (positive x)) => (positive s)
((= s (Inv x)) (nonzero x)) => (nonzero s)
((= s (Scale q x)) (positive x) (> q {_ZERO})) => (positive s)
((= s (Scale q x)) (nonneg x) (>= q {_ZERO})) => (nonneg s)
((= s (Scale q x)) (nonzero x) (!= q {_ZERO})) => (nonzero s)
((= s (Scale q x)) (integer x) (= (denom q) (bigint 1))) => (integer s)
((= s (Scale q x)) (= a (low x)) (>= q {_ZERO})) => (set (low s) (* q a))
((= s (Scale q x)) (= a (high x)) (>= q {_ZERO})) => (set (high s) (* q a))
((= s (Scale q x)) (= a (high x)) (< q {_ZERO})) => (set (low s) (* q a))
((= s (Scale q x)) (= a (low x)) (< q {_ZERO})) => (set (high s) (* q a))
((= s (Ge0 x))) => (boolean s)
((= s (Eq0 x))) => (boolean s)
((= s (Total vs x)) (positive x)) => (positive s)
((= s (Total vs x)) (nonneg x)) => (nonneg s)
((= s (Total vs x)) (integer x)) => (integer s)
((= s (Greatest vs x)) (positive x)) => (positive s)
((= s (Greatest vs x)) (nonneg x)) => (nonneg s)
((= s (Greatest vs x)) (integer x)) => (integer s)
((= s (Max ms)) (= k (member ms x)) (positive x)) => (positive s)
((= s (Max ms)) (= k (member ms x)) (nonneg x)) => (nonneg s)
((= s (Max ms)) (= k (member ms x)) (= q (low x))) => (set (low s) q)
((= s (Select p x y)) (positive x) (positive y)) => (positive s)
((= s (Select p x y)) (nonneg x) (nonneg y)) => (nonneg s)
((= s (Select p x y)) (integer x) (integer y)) => (integer s)
((= s (Add ms)) (= k (member ms x)) (positive x) (= r (multiset-remove ms x)) (all-nonneg r)) => (positive s)
((= s (Add ms)) (= k (member ms x)) (positive x)) => (need (multiset-remove ms x))
((= s (Add ms)) (all-nonneg ms)) => (nonneg s)
((= s (Add ms)) (all-integer ms)) => (integer s)
((= s (Add ms)) (= q (lowm ms))) => (set (low s) q)
((= s (Add ms)) (= q (highm ms))) => (set (high s) q)
((= s (Mul ms)) (all-positive ms)) => (positive s)
((= s (Mul ms)) (all-nonneg ms)) => (nonneg s)
((= s (Mul ms)) (all-nonzero ms)) => (nonzero s)
((= s (Mul ms)) (all-boolean ms)) => (boolean s)
((= s (Mul ms)) (all-integer ms)) => (integer s)
((= s (Mul ms)) (= ms (multiset-of x x)) (= k (member ms x))) => (nonneg s)
((need ms) (= 0 (multiset-length ms))) => (all-positive ms) (all-nonneg ms) (all-nonzero ms) (all-negative ms) (all-boolean ms) (all-integer ms) (set (fvm ms) (set-empty)) (set (lowm ms) {_ZERO}) (set (highm ms) {_ZERO})
((chain ms x r) (positive x) (all-positive r)) => (all-positive ms)
((chain ms x r) (nonneg x) (all-nonneg r)) => (all-nonneg ms)
((chain ms x r) (nonzero x) (all-nonzero r)) => (all-nonzero ms)
((chain ms x r) (negative x) (all-negative r)) => (all-negative ms)
((chain ms x r) (boolean x) (all-boolean r)) => (all-boolean ms)
((chain ms x r) (integer x) (all-integer r)) => (all-integer ms)
((chain ms x r) (= a (low x)) (= b (lowm r))) => (set (lowm ms) (+ a b))
((chain ms x r) (= a (high x)) (= b (highm r))) => (set (highm ms) (+ a b))
((chain ms x r) (= a (fv x)) (= b (fvm r))) => (set (fvm ms) (set-union a b))
((= s (Add ms)) (= a (fvm ms))) => (set (fv s) a)
((= s (Mul ms)) (= a (fvm ms))) => (set (fv s) a)
((= s (Max ms)) (= a (fvm ms))) => (set (fv s) a)
((= s (AtVar f v)) (= a (fv f))) => (set (fv s) (set-insert a v))
((= s (AtConst f k)) (= a (fv f))) => (set (fv s) a)
((= s (Iota v))) => (set (fv s) (set-of v)) (integer s) (set (low s) {_ZERO})
((= s (Scale q x)) (= a (fv x))) => (set (fv s) a)
((= s (Inv x)) (= a (fv x))) => (set (fv s) a)
((= s (Ge0 x)) (= a (fv x))) => (set (fv s) a)
((= s (Eq0 x)) (= a (fv x))) => (set (fv s) a)
((= s (Fn f x)) (= a (fv x))) => (set (fv s) a)
((= s (App x y)) (= a (fv x)) (= b (fv y))) => (set (fv s) (set-union a b))
((= s (Select x y z)) (= a (fv x)) (= b (fv y)) (= c (fv z))) => (set (fv s) (set-union a (set-union b c)))
((= s (Total vs x)) (= a (fv x))) => (set (fv s) (set-diff a vs))
((= s (Greatest vs x)) (= a (fv x))) => (set (fv s) (set-diff a vs))
((= g (Eq0 i)) (= i (Iota v))) => (selects g v 0)
((= g (Eq0 a)) (= a (Add am)) (= i (Iota v)) (= h (member am i)) (constant-index k p q) (= c (Num q)) (= am (multiset-of i c)) (= n (size v)) (< k n)) => (selects g v k)
((= g (Eq0 a)) (= a (Add am)) (= i (Iota v)) (= ni (Scale {_MINUS} i)) (= h (member am ni)) (constant-index k p q) (= c (Num p)) (= am (multiset-of ni c)) (= n (size v)) (< k n)) => (selects g v k)
((= g (Iota v)) (= 2 (size v))) => (boolean g) (selects g v 1)
((= a (Add am)) (= i (Iota v)) (= 2 (size v)) (= ni (Scale {_MINUS} i)) (= h (member am ni)) (= c (Num {_ONE})) (= am (multiset-of ni c))) => (boolean a) (selects a v 0)
((= a (Add am)) (boolean b) (= nb (Scale {_MINUS} b)) (= h (member am nb)) (= c (Num {_ONE})) (= am (multiset-of nb c))) => (boolean a)
((= g (Eq0 a)) (= a (Add am)) (= i (Iota v)) (= h (member am i)) (= j (Iota w)) (!= v w) (= nj (Scale {_MINUS} j)) (= am (multiset-of i nj)) (= n (size v)) (= n (size w))) => (equates g v w) (equates g w v)
"""


_UNDEFINED = (
    f"(= s (Inv z)) (= z (Num {_ZERO}))",
    f'(= s (Fn "log" z)) (= z (Num q)) (<= q {_ZERO})',
    '(= s (Fn "sqrt" z)) (negative z)',
    '(= s (Fn "log" z)) (negative z)',
)


def commands() -> list[str]:
    """All commands of the preamble, one a string."""
    found = [line for line in SORTS.splitlines() if line]
    found += [f"(relation {name} ({columns}))" for name, columns in ROWS.items()]
    found += [f"(ruleset {name})" for name in RULESETS]
    for ruleset, text in (("load", LOAD), ("index", INDEX), ("form", FORMS), ("facts", FACTS)):
        lines = [line for line in text.splitlines() if line]
        found += [line if "=>" not in line else _rule(ruleset, number, line) for number, line in enumerate(lines)]
    found.append(f"(Num {_ZERO})")
    found.append(f'(rule ((goal x x)) ((goal x x)) :ruleset facts :name "{GOAL}")')
    found.append(f'(rule ((= (Num p) (Num q)) (!= p q)) ((contradiction)) :ruleset facts :name "{CONTRADICTION}")')
    for number, body in enumerate(_UNDEFINED):
        found.append(f'(rule ({body}) ((undefined)) :ruleset facts :name "{UNDEFINED}{number or ""}")')
    return found


def _rule(ruleset: str, number: int, line: str) -> str:
    body, head = line.split(" => ")
    return f'(rule {body} ({head}) :ruleset {ruleset} :name "{ruleset} {number}")'
