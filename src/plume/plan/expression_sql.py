"""An expression as SQL. Total on every row: none of these texts can raise on data."""

import math
from functools import singledispatch

from plume.errors import PlumeBug
from plume.plan import expressions as e
from plume.plan.aggregates import Sum
from plume.plan.dialect import DUCKDB, Target, constant, identifier
from plume.plan.magnitude import fits, sum_fits

# Of a user's keys as good as none agree in so much of their hash, and the key itself decides between those that do.
_ORDER_DIGITS = 12
# The factor by which nothing shrinks.
WHOLE = 2**30
_LARGEST_DOUBLE = "1.7976931348623157e308"


@singledispatch
def print_expression(expression: e.Expression, target: Target) -> str:
    """Print an expression over the columns of a row."""
    raise PlumeBug(f"no SQL for {type(expression).__name__} in {target.dialect.name}")


@print_expression.register
def _(expression: e.Column, target: Target) -> str:
    return identifier(expression.name, target.dialect)


@print_expression.register
def _(expression: e.Literal, target: Target) -> str:
    return constant(expression.value, target.dialect)


@print_expression.register
def _(expression: e.Number, target: Target) -> str:
    value = f"CAST({print_expression(expression.of, target)} AS DOUBLE)"
    return f"CASE WHEN {_finite(value)} THEN {value} END"


@print_expression.register
def _(expression: e.Microseconds, target: Target) -> str:
    # Dates reach further than moments; beyond, the cast gives NULL where a comparison would raise.
    function = "epoch_us" if target.dialect == DUCKDB else "unix_micros"
    return f"{function}(TRY_CAST({print_expression(expression.of, target)} AS TIMESTAMP))"


@print_expression.register
def _(expression: e.When, target: Target) -> str:
    return (
        f"CASE WHEN {print_expression(expression.condition, target)} THEN {print_expression(expression.of, target)} END"
    )


@print_expression.register
def _(expression: e.Quantise, target: Target) -> str:
    value = f"CAST({print_expression(expression.of, target)} AS DOUBLE)"
    low, high = (_double(math.ldexp(bound, expression.exponent)) for bound in (expression.low, expression.high))
    distance = f"({value} - {_double(expression.origin)})" if expression.origin else value
    scaled = f"greatest(least({distance}, {high}), {low}) * {_double(2.0**-expression.exponent)}"
    rounded = f"CAST(floor({scaled} + 0.5e0) AS {_summable(expression, target)})"
    return f"CASE WHEN {_finite(value)} THEN {rounded} END"


def _finite(value: str) -> str:
    # NaN sorts above every number in both engines, so the comparison drops NULL, NaN and infinities alike.
    return f"{value} BETWEEN -{_LARGEST_DOUBLE} AND {_LARGEST_DOUBLE}"


@print_expression.register
def _(expression: e.Square, target: Target) -> str:
    root = f"CAST({print_expression(expression.of, target)} AS DOUBLE)"
    scaled = f"({root} * {root} - {_double(expression.centre)}) * {_double(2.0**-expression.exponent)}"
    return f"CAST(floor({scaled} + 0.5e0) AS {_summable(expression, target)})"


def _summable(expression: e.Expression, target: Target) -> str:
    return "BIGINT" if sum_fits(Sum(expression)) else target.dialect.summable_type


@print_expression.register
def _(expression: e.DownWeight, target: Target) -> str:
    total, count = print_expression(expression.of, target), print_expression(expression.count, target)
    if expression.limit == 1:
        return f"CASE WHEN {count} > 1 THEN {total} {_divide(target)} {count} ELSE {total} END"
    # Both engines would rather overflow than widen a 64-bit total.
    weighted = f"CAST({total} AS {target.dialect.wide_type}) * {expression.limit} {_divide(target)} {count}"
    return f"CASE WHEN {count} > {expression.limit} THEN CAST({weighted} AS BIGINT) ELSE {total} END"


@print_expression.register
def _(expression: e.Shorten, target: Target) -> str:
    # Where the vector is short enough all numbers here are exact; elsewhere the factor is lowered by more than it can be wrong.
    wide, divide = target.dialect.wide_type, "//" if target.dialect == DUCKDB else "div"
    coordinates = [f"CAST(coalesce({print_expression(part, target)}, 0) AS DOUBLE)" for part in expression.vector]
    norm = " + ".join(f"{coordinate} * {coordinate}" for coordinate in coordinates)
    value = print_expression(expression.of, target)
    factor = f"greatest(floor({_double(expression.limit * 2**30)} / sqrt({norm})) - 1e0, 0e0)"
    shortened = f"CAST({factor} AS {wide}) * {value} {divide} {2**30}"
    return f"CASE WHEN {norm} <= {_double(expression.limit**2)} THEN {value} ELSE {shortened} END"


@print_expression.register
def _(expression: e.Leaf, target: Target) -> str:
    value = f"CAST({print_expression(expression.of, target)} AS DOUBLE)"
    low, high = _double(expression.low), _double(expression.high)
    per_unit = _double(expression.leaves / (expression.high - expression.low))
    leaf = f"least(floor((greatest(least({value}, {high}), {low}) - {low}) * {per_unit}), {_double(expression.leaves - 1)})"
    return f"CASE WHEN {_finite(value)} THEN CAST({leaf} AS INT) END"


@print_expression.register
def _(expression: e.Bucket, target: Target) -> str:
    value = f"CAST({print_expression(expression.of, target)} AS DOUBLE)"
    first, *inner, last = expression.edges
    within = f"{value} BETWEEN {_double(first)} AND {_double(last)}"
    return f"CASE WHEN {within} THEN {_search(value, inner, 0)} END"


def _search(value: str, edges: list[float], before: int) -> str:
    """Find the bucket by halving, so that a thousand edges take ten comparisons."""
    if not edges:
        return str(before)
    half = len(edges) // 2
    below, above = _search(value, edges[:half], before), _search(value, edges[half + 1 :], before + half + 1)
    return f"CASE WHEN {value} < {_double(edges[half])} THEN {below} ELSE {above} END"


@print_expression.register
def _(expression: e.Tally, target: Target) -> str:
    leaves, count = print_expression(expression.of, target), print_expression(expression.count, target)
    if target.dialect == DUCKDB:
        each = f"list_transform({leaves}, lambda leaf: {{'leaf': leaf, 'weight': CAST({expression.unit} AS BIGINT)}})"
    else:
        each = f"transform({leaves}, leaf -> named_struct('leaf', leaf, 'weight', CAST({expression.unit} AS BIGINT)))"
    # Most users have few values, and equal leaves of theirs are added up later anyway.
    return (
        f"CASE WHEN {count} <= {expression.limit} THEN {each} ELSE {_print_leaves_once(expression, count, target)} END"
    )


def _print_leaves_once(expression: e.Tally, values: str, target: Target) -> str:
    """Print a tally in which no leaf comes twice, of a user with so many values."""
    leaves, most = print_expression(expression.of, target), expression.limit * expression.unit
    if target.dialect == DUCKDB:
        weight = f"CAST(CAST(found.value AS HUGEINT) * {most} // {values} AS BIGINT)"
        return f"list_transform(map_entries(list_histogram({leaves})), lambda found: {{'leaf': found.key, 'weight': {weight}}})"
    number = f"CAST(size(filter({leaves}, other -> other = leaf)) AS DECIMAL(38, 0))"
    weight = f"CAST({number} * {most} div {values} AS BIGINT)"
    return f"transform(array_distinct({leaves}), leaf -> named_struct('leaf', leaf, 'weight', {weight}))"


@print_expression.register
def _(expression: e.NoTally, target: Target) -> str:
    del expression
    if target.dialect == DUCKDB:
        return "CAST([] AS STRUCT(leaf INTEGER, weight BIGINT)[])"
    return "CAST(array() AS ARRAY<STRUCT<leaf: INT, weight: BIGINT>>)"


@print_expression.register
def _(expression: e.Clamp, target: Target) -> str:
    value = print_expression(expression.of, target)
    # least() and greatest() skip NULL, which would turn it into a bound.
    clamped = f"CAST(greatest(least({value}, {expression.high}), {expression.low}) AS BIGINT)"
    return f"CASE WHEN {value} IS NULL THEN 0 ELSE {clamped} END"


@print_expression.register
def _(expression: e.Times, target: Target) -> str:
    return f"({print_expression(expression.of, target)} * {expression.factor})"


@print_expression.register
def _(expression: e.Coarser, target: Target) -> str:
    return f"({print_expression(expression.of, target)} {_divide(target)} {1 << expression.bits})"


@print_expression.register
def _(expression: e.Absolute, target: Target) -> str:
    return f"abs({print_expression(expression.of, target)})"


@print_expression.register
def _(expression: e.Shrink, target: Target) -> str:
    if not isinstance(expression.of, e.Tally):
        return _print_shrunk(print_expression(expression.of, target), expression, target)
    tally = expression.of
    # Cut toward zero leaf by leaf, not value by value.
    of = _print_leaves_once(tally, f"greatest({print_expression(tally.count, target)}, {tally.limit})", target)
    weight = _print_shrunk("pair.weight", expression, target)
    if target.dialect == DUCKDB:
        return f"list_transform({of}, lambda pair: {{'leaf': pair.leaf, 'weight': {weight}}})"
    return f"transform({of}, pair -> named_struct('leaf', pair.leaf, 'weight', {weight}))"


def _print_shrunk(number: str, expression: e.Shrink, target: Target) -> str:
    factor = print_expression(expression.factor, target)
    if fits(expression.of, times=WHOLE):
        return f"{number} * {factor} {_divide(target)} {WHOLE}"
    return f"CAST(CAST({number} AS {target.dialect.wide_type}) * {factor} {_divide(target)} {WHOLE} AS BIGINT)"


def _divide(target: Target) -> str:
    # Both engines cut the quotient of integers toward zero.
    return "//" if target.dialect == DUCKDB else "div"


@print_expression.register
def _(expression: e.Fullness, target: Target) -> str:
    parts = [
        f"least(abs(CAST(coalesce({print_expression(of, target)}, 0) AS BIGINT)), {most}) * {expression.full} {_divide(target)} {most}"
        for of, most in zip(expression.of, expression.most, strict=True)
    ]
    return f"({' + '.join(parts)}) {_divide(target)} {len(parts)}"


@print_expression.register
def _(expression: e.Integer, target: Target) -> str:
    return f"CAST({print_expression(expression.of, target)} AS BIGINT)"


@print_expression.register
def _(expression: e.Compare, target: Target) -> str:
    return f"{print_expression(expression.left, target)} {expression.comparator.value} {print_expression(expression.right, target)}"


@print_expression.register
def _(expression: e.AllOf | e.AnyOf, target: Target) -> str:
    word = " AND " if isinstance(expression, e.AllOf) else " OR "
    return "(" + word.join(print_expression(condition, target) for condition in expression.conditions) + ")"


@print_expression.register
def _(expression: e.Not, target: Target) -> str:
    return f"(NOT {print_expression(expression.of, target)})"


@print_expression.register
def _(expression: e.IsNull, target: Target) -> str:
    return f"({print_expression(expression.of, target)} IS NULL)"


@print_expression.register
def _(expression: e.IsIn, target: Target) -> str:
    among = ", ".join(print_expression(literal, target) for literal in expression.among)
    return f"({print_expression(expression.of, target)} IN ({among}))"


@print_expression.register
def _(expression: e.Like, target: Target) -> str:
    pattern = str(expression.pattern.value)
    for plain, escaped in target.dialect.pattern_escapes:
        pattern = pattern.replace(plain, escaped)
    return f"({print_expression(expression.of, target)} LIKE {constant(pattern, target.dialect)})"


def _double(value: float) -> str:
    # An exponent makes it a double in both dialects; 0.5 alone is a decimal.
    return f"{value:.17e}"


@print_expression.register
def _(expression: e.InverseRoot, target: Target) -> str:
    root = f"sqrt(CAST({print_expression(expression.of, target)} AS DOUBLE))"
    return f"CAST(floor({_double(expression.unit)} / {root}) AS BIGINT)"


@print_expression.register
def _(expression: e.SecretOrder, target: Target) -> str:
    # Each column but the last as its length, a colon and its text: different columns never give equal texts.
    text_type = target.dialect.text_type
    *measured, last = [f"CAST({print_expression(column, target)} AS {text_type})" for column in expression.of]
    encoded = "".join(f"CAST(length({text}) AS {text_type}), ':', {text}, " for text in measured) + last
    digits = f"left(md5(concat({constant(target.salt, target.dialect)}, {encoded})), {_ORDER_DIGITS})"
    # DuckDB sorts and packs numbers sooner than texts, and as many hexadecimal digits order alike.
    return f"CAST('0x' || {digits} AS BIGINT)" if target.dialect == DUCKDB else digits
