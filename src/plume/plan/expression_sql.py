"""An expression or aggregate as SQL. Total on every row: none of these texts can raise on data."""

from functools import singledispatch

from plume.errors import PlumeBug
from plume.plan import expressions as e
from plume.plan.dialect import Target, constant, identifier

# Public guard of algorithms 3.1: no value of one record counts for more than this many grid units.
GUARD_BITS = 62
_LARGEST_DOUBLE = "1.7976931348623157e308"


def print_aggregate(aggregate: e.Aggregate, target: Target) -> str:
    """Print an aggregate over the rows of a group."""
    match aggregate:
        case e.Count():
            return "count(*)"
        case e.Sum(of):
            return f"sum({print_expression(of, target)})"
        case e.Max(of):
            return f"max({print_expression(of, target)})"


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
def _(expression: e.Quantise, target: Target) -> str:
    value = f"CAST({print_expression(expression.of, target)} AS DOUBLE)"
    guard = _double(2.0 ** (GUARD_BITS + expression.exponent))
    scaled = f"greatest(least({value}, {guard}), -{guard}) * {_double(2.0**-expression.exponent)}"
    rounded = f"CAST(floor({scaled} + 0.5e0) AS {target.dialect.summable_type})"
    # NaN sorts above every number in both engines, so the comparison drops NULL, NaN and infinities alike.
    return f"CASE WHEN {value} BETWEEN -{_LARGEST_DOUBLE} AND {_LARGEST_DOUBLE} THEN {rounded} END"


@print_expression.register
def _(expression: e.Clamp, target: Target) -> str:
    value = print_expression(expression.of, target)
    # least() and greatest() skip NULL, which would turn it into a bound.
    clamped = f"CAST(greatest(least({value}, {expression.high}), {expression.low}) AS BIGINT)"
    return f"CASE WHEN {value} IS NULL THEN 0 ELSE {clamped} END"


@print_expression.register
def _(expression: e.Integer, target: Target) -> str:
    return f"CAST({print_expression(expression.of, target)} AS BIGINT)"


@print_expression.register
def _(expression: e.Compare, target: Target) -> str:
    return f"{print_expression(expression.left, target)} {expression.comparator.value} {print_expression(expression.right, target)}"


@print_expression.register
def _(expression: e.AllOf, target: Target) -> str:
    return "(" + " AND ".join(print_expression(condition, target) for condition in expression.conditions) + ")"


@print_expression.register
def _(expression: e.AnyOf, target: Target) -> str:
    return "(" + " OR ".join(print_expression(condition, target) for condition in expression.conditions) + ")"


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
    # Each column as its length, a colon and its text: different columns never give equal texts.
    text_type = target.dialect.text_type
    texts = [f"CAST({print_expression(column, target)} AS {text_type})" for column in expression.of]
    encoded = ", ".join(f"CAST(length({text}) AS {text_type}), ':', {text}" for text in texts)
    return f"md5(concat({constant(target.salt, target.dialect)}, {encoded}))"
