"""An expression as SQL. Total on every row: none of these texts can raise on data."""

import math
from functools import singledispatch

from plume.errors import PlumeBug
from plume.plan import expressions as e
from plume.plan.aggregates import Sum
from plume.plan.dialect import constant
from plume.plan.magnitude import fits, sum_fits
from plume.plan.printing.printer import Printer
from plume.privacy.pooled import STEPS

# Hardly any two keys of a user agree in this many digits of their hash; the key itself decides between those that do.
_ORDER_DIGITS = 12
# The factor by which nothing shrinks.
WHOLE = 2**30
_LARGEST_DOUBLE = "1.7976931348623157e308"


@singledispatch
def print_expression(expression: e.Expression, printer: Printer) -> str:
    """Print an expression over the columns of a row."""
    raise PlumeBug(f"no SQL for {type(expression).__name__} in {printer.dialect.name}")


@print_expression.register
def _(expression: e.Column, printer: Printer) -> str:
    return printer.name(expression.name)


@print_expression.register
def _(expression: e.Literal, printer: Printer) -> str:
    return constant(expression.value, printer.dialect)


@print_expression.register
def _(expression: e.NoValue, printer: Printer) -> str:
    del expression, printer
    return "NULL"


@print_expression.register
def _(expression: e.Number, printer: Printer) -> str:
    value = _as_double(expression.of, printer)
    return f"CASE WHEN {_finite(value)} THEN {value} END"


@print_expression.register
def _(expression: e.Microseconds, printer: Printer) -> str:
    return printer.microseconds(print_expression(expression.of, printer))


@print_expression.register
def _(expression: e.When, printer: Printer) -> str:
    return f"CASE WHEN {print_expression(expression.condition, printer)} THEN {print_expression(expression.of, printer)} END"


@print_expression.register
def _(expression: e.Quantise, printer: Printer) -> str:
    value = _as_double(expression.of, printer)
    low, high = (_double(math.ldexp(bound, expression.exponent)) for bound in (expression.low, expression.high))
    distance = f"({value} - {_double(expression.origin)})" if expression.origin else value
    scaled = printer.scaled(f"greatest(least({distance}, {high}), {low})", _double(2.0**-expression.exponent))
    rounded = f"CAST(floor({scaled} + 0.5e0) AS {_summable(expression, printer)})"
    return f"CASE WHEN {_finite(value)} THEN {rounded} END"


def _as_double(of: e.Expression, printer: Printer) -> str:
    return f"CAST({print_expression(of, printer)} AS {printer.dialect.double_type})"


def _divided(number: str, by: object, printer: Printer) -> str:
    return printer.dialect.divide.format(number, by)


def _finite(value: str) -> str:
    # NaN sorts above every number in both engines, so the comparison drops NULL, NaN and infinities alike.
    return f"{value} BETWEEN -{_LARGEST_DOUBLE} AND {_LARGEST_DOUBLE}"


@print_expression.register
def _(expression: e.Square, printer: Printer) -> str:
    root = _as_double(expression.of, printer)
    scaled = f"({root} * {root} - {_double(expression.centre)}) * {_double(2.0**-expression.exponent)}"
    return f"CAST(floor({scaled} + 0.5e0) AS {_summable(expression, printer)})"


def _summable(expression: e.Expression, printer: Printer) -> str:
    return "BIGINT" if sum_fits(Sum(expression)) else printer.dialect.summable_type


@print_expression.register
def _(expression: e.DownWeight, printer: Printer) -> str:
    total, count = print_expression(expression.of, printer), print_expression(expression.count, printer)
    if expression.limit == 1:
        return f"CASE WHEN {count} > 1 THEN {_divided(total, count, printer)} ELSE {total} END"
    # Both engines would rather overflow than widen a 64-bit total.
    weighted = _divided(f"CAST({total} AS {printer.dialect.wide_type}) * {expression.limit}", count, printer)
    return f"CASE WHEN {count} > {expression.limit} THEN CAST({weighted} AS BIGINT) ELSE {total} END"


@print_expression.register
def _(expression: e.Shorten, printer: Printer) -> str:
    # Where the vector is short enough all numbers here are exact; elsewhere the factor is lowered by more than it can be wrong.
    wide, double = printer.dialect.wide_type, printer.dialect.double_type
    coordinates = [f"CAST(coalesce({print_expression(part, printer)}, 0) AS {double})" for part in expression.vector]
    norm = " + ".join(f"{coordinate} * {coordinate}" for coordinate in coordinates)
    value = print_expression(expression.of, printer)
    factor = f"greatest(floor({_double(expression.limit * 2**30)} / sqrt({norm})) - 1e0, 0e0)"
    shortened = _divided(f"CAST({factor} AS {wide}) * {value}", 2**30, printer)
    return f"CASE WHEN {norm} <= {_double(expression.limit**2)} THEN {value} ELSE {shortened} END"


@print_expression.register
def _(expression: e.Leaf, printer: Printer) -> str:
    value = _as_double(expression.of, printer)
    low, high = _double(expression.low), _double(expression.high)
    per_unit = _double(expression.leaves / (expression.high - expression.low))
    place = printer.scaled(f"(greatest(least({value}, {high}), {low}) - {low})", per_unit)
    leaf = f"least(floor({place}), {_double(expression.leaves - 1)})"
    return f"CASE WHEN {_finite(value)} THEN CAST({leaf} AS INT) END"


@print_expression.register
def _(expression: e.Bucket, printer: Printer) -> str:
    value = _as_double(expression.of, printer)
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
def _(expression: e.Tally, printer: Printer) -> str:
    leaves, count = print_expression(expression.of, printer), print_expression(expression.count, printer)
    each = printer.each(leaves, "leaf", printer.pair("leaf", f"CAST({expression.unit} AS BIGINT)"))
    # Most users have few values, and equal leaves of theirs are added up later anyway.
    return (
        f"CASE WHEN {count} <= {expression.limit} THEN {each} ELSE {_print_leaves_once(expression, count, printer)} END"
    )


def _print_leaves_once(expression: e.Tally, values: str, printer: Printer) -> str:
    """Print a tally in which no leaf comes twice, of a user with a number of values."""
    most = expression.limit * expression.unit

    def weight(number: str) -> str:
        weighted = _divided(f"CAST({number} AS {printer.dialect.wide_type}) * {most}", values, printer)
        return f"CAST({weighted} AS BIGINT)"

    return printer.each_once(print_expression(expression.of, printer), weight)


@print_expression.register
def _(expression: e.NoTally, printer: Printer) -> str:
    del expression
    return printer.no_tally()


@print_expression.register
def _(expression: e.Clamp, printer: Printer) -> str:
    value = print_expression(expression.of, printer)
    # least() and greatest() skip NULL, which would turn it into a bound.
    clamped = f"CAST(greatest(least({value}, {expression.high}), {expression.low}) AS BIGINT)"
    return f"CASE WHEN {value} IS NULL THEN 0 ELSE {clamped} END"


@print_expression.register
def _(expression: e.Times, printer: Printer) -> str:
    return f"({print_expression(expression.of, printer)} * {expression.factor})"


@print_expression.register
def _(expression: e.Coarser, printer: Printer) -> str:
    return f"({_divided(print_expression(expression.of, printer), 1 << expression.bits, printer)})"


@print_expression.register
def _(expression: e.Absolute, printer: Printer) -> str:
    return f"abs({print_expression(expression.of, printer)})"


@print_expression.register
def _(expression: e.Shrink, printer: Printer) -> str:
    if not isinstance(expression.of, e.Tally):
        return _print_shrunk(print_expression(expression.of, printer), expression, printer)
    tally = expression.of
    # Cut toward zero leaf by leaf, not value by value.
    of = _print_leaves_once(tally, f"greatest({print_expression(tally.count, printer)}, {tally.limit})", printer)
    weight = _print_shrunk("pair.weight", expression, printer)
    return printer.each(of, "pair", printer.pair("pair.leaf", weight))


def _print_shrunk(number: str, expression: e.Shrink, printer: Printer) -> str:
    factor = print_expression(expression.factor, printer)
    if fits(expression.of, times=WHOLE):
        return _divided(f"{number} * {factor}", WHOLE, printer)
    shrunk = _divided(f"CAST({number} AS {printer.dialect.wide_type}) * {factor}", WHOLE, printer)
    return f"CAST({shrunk} AS BIGINT)"


@print_expression.register
def _(expression: e.Fullness, printer: Printer) -> str:
    sizes = [f"abs(CAST(coalesce({print_expression(of, printer)}, 0) AS BIGINT))" for of in expression.of]
    parts = [
        _divided(f"least({size}, {most}) * {expression.full}", most, printer)
        for size, most in zip(sizes, expression.most, strict=True)
    ]
    return _divided(f"({' + '.join(parts)})", len(parts), printer)


@print_expression.register
def _(expression: e.Integer, printer: Printer) -> str:
    return f"CAST({print_expression(expression.of, printer)} AS BIGINT)"


@print_expression.register
def _(expression: e.Compare, printer: Printer) -> str:
    return f"{print_expression(expression.left, printer)} {expression.comparator.value} {print_expression(expression.right, printer)}"


@print_expression.register
def _(expression: e.UsersWithin, printer: Printer) -> str:
    counted = print_expression(expression.counted, printer)
    return f"(({counted} IS NULL) OR {counted} <= {expression.limit})"


@print_expression.register
def _(expression: e.UsersAbove, printer: Printer) -> str:
    return f"{print_expression(expression.counted, printer)} > {expression.limit}"


@print_expression.register
def _(expression: e.AllOf | e.AnyOf, printer: Printer) -> str:
    word = " AND " if isinstance(expression, e.AllOf) else " OR "
    return "(" + word.join(print_expression(condition, printer) for condition in expression.conditions) + ")"


@print_expression.register
def _(expression: e.Not, printer: Printer) -> str:
    return f"(NOT {print_expression(expression.of, printer)})"


@print_expression.register
def _(expression: e.IsNull, printer: Printer) -> str:
    return f"({print_expression(expression.of, printer)} IS NULL)"


@print_expression.register
def _(expression: e.IsIn, printer: Printer) -> str:
    among = ", ".join(print_expression(literal, printer) for literal in expression.among)
    return f"({print_expression(expression.of, printer)} IN ({among}))"


@print_expression.register
def _(expression: e.Like, printer: Printer) -> str:
    pattern = str(expression.pattern.value)
    for plain, escaped in printer.dialect.pattern_escapes:
        pattern = pattern.replace(plain, escaped)
    return f"({print_expression(expression.of, printer)} LIKE {constant(pattern, printer.dialect)})"


def _double(value: float) -> str:
    # An exponent makes it a double in both dialects; 0.5 alone is a decimal.
    return f"{value:.17e}"


@print_expression.register
def _(expression: e.InverseRoot, printer: Printer) -> str:
    root = f"sqrt({_as_double(expression.of, printer)})"
    return f"CAST(floor({_double(expression.unit)} / {root}) AS BIGINT)"


@print_expression.register
def _(expression: e.PooledWeight, printer: Printer) -> str:
    left, keys = print_expression(expression.left, printer), print_expression(expression.keys, printer)
    part = _divided(f"(coalesce({left}, 0) * {STEPS})", f"greatest({keys}, 1)", printer)
    return f"CAST(floor(sqrt(CAST({part} AS {printer.dialect.double_type}))) AS BIGINT)"


@print_expression.register
def _(expression: e.SecretOrder, printer: Printer) -> str:
    # Each column but the last as its length, a colon and its text: different columns never give equal texts.
    text_type = printer.dialect.text_type
    *measured, last = [f"CAST({print_expression(column, printer)} AS {text_type})" for column in expression.of]
    encoded = "".join(f"CAST(length({text}) AS {text_type}), ':', {text}, " for text in measured) + last
    return printer.order(f"left(md5(concat({printer.secret()}, {encoded})), {_ORDER_DIGITS})")
