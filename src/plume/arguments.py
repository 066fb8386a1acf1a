"""A call that does not fit says what it lacks, what that means, and what was meant.

Python's own TypeError names arguments and no more. Functions keep their signatures, in the eyes of type checkers too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, ParamSpec, TypeVar

from plume.errors import ArgumentError, shown
from plume.settings import AUTO

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

MEANINGS = {
    "budget": "the most that the release may spend, such as plume.Budget(epsilon=1, delta=1e-6)",
    "column": "the name of the column that is read, such as 'seconds'",
    "data": "the table: the path of a file, or a list of paths, a DataFrame, an Arrow table or a relation",
    "epsilon": "how much may be learned about one user, such as 1.0; a smaller one protects more and adds more noise",
    "high": "the largest value that counts as it is, such as 60; larger ones are clamped to it",
    "high_total": "the most that one user may add to a key in total, such as 60",
    "keys": "the column to group by, such as 'country', or a list of columns; [] asks for a total",
    "low": "the smallest value that counts as it is, such as 0; smaller ones are clamped to it",
    "low_total": "the least that one user may add to a key in total, such as 0",
    "max_keys_per_user": "the limit on keys per user, such as 8",
    "max_per_key": "the most records of one user that count in a key, such as 3",
    "measures": "what to compute per key, such as [plume.users(), plume.count(max_per_key=3)]",
    "path": "the path of the file, such as 'budget.ledger' of a ledger",
    "query": "the plume.Query to answer",
    "text": "the statement, such as \"SELECT WITH DIFFERENTIAL_PRIVACY ... FROM 'rows.parquet' GROUP BY country\"",
    "unit": "the column that identifies the user whose rows these are",
    "user": "the column that identifies the user, such as 'user_id'; all rows of one user are protected together",
    "users": "how many users a key has that matters to you, such as 500",
}
"""What arguments that must be given are, where several functions have them; a name means the same in all of them."""
# What others call an argument, where the words are not alike.
_ELSEWHERE = {
    "by": ("keys",),
    "group_by": ("keys",),
    "groupby": ("keys",),
    "lower": ("low", "low_total"),
    "max": ("high", "high_total"),
    "min": ("low", "low_total"),
    "upper": ("high", "high_total"),
}


@dataclass(frozen=True)
class _Hints:
    """What a function says of its arguments itself."""

    auto: Sequence[str]
    instead: Mapping[str, str]
    meanings: Mapping[str, str]


def call_checked(
    *, auto: Sequence[str] = (), instead: Mapping[str, str] | None = None, meanings: Mapping[str, str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function explain a call that does not fit it.

    `auto` names the arguments that may be left to "auto", `instead` says of an argument that it does not have what to write instead, and
    `meanings` says what arguments are that no other function has.
    """
    hints = _Hints(auto, instead or {}, MEANINGS | dict(meanings or {}))

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        fitting = signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            _refuse_misfit(fitting, f"plume.{function.__name__}", args, kwargs, hints)
            return function(*args, **kwargs)

        return checked

    return decorate


def making_checked(
    *,
    auto: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
    unless: Mapping[str, Callable[[Mapping[str, Any]], bool]] | None = None,
) -> Callable[[type[T]], type[T]]:
    """Make a class explain a call that does not fit it, as `call_checked` does for functions.

    `unless` names arguments that must be given although they have a default, unless a function of what is given says otherwise.
    """
    hints = _Hints(auto, instead or {}, MEANINGS)

    def decorate(made: type[T]) -> type[T]:
        fitting, prepare = signature(made), vars(made)["__init__"]

        @wraps(prepare)
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            needed = [name for name, spared in (unless or {}).items() if not spared(kwargs)]
            _refuse_misfit(_with_needed(fitting, needed), f"plume.{made.__name__}", args, kwargs, hints)
            prepare(self, *args, **kwargs)

        made.__init__ = checked  # type: ignore[method-assign]  # its signature is what it wraps
        return made

    return decorate


def methods_checked(called: str, **meanings: str) -> Callable[[type[T]], type[T]]:
    """Make the public methods of a class explain calls that do not fit them, as `call_checked` does for functions.

    `called` is what an object of the class is called in examples, and `meanings` says what arguments are in this class.
    """
    hints = _Hints((), {}, MEANINGS | meanings)

    def decorate(made: type[T]) -> type[T]:
        for name, member in list(vars(made).items()):
            function = member.__func__ if isinstance(member, classmethod) else member
            if name.startswith("_") or not isfunction(function):
                continue
            owner = f"plume.{made.__name__}" if isinstance(member, classmethod) else called
            checked = _method_checked(function, f"{owner}.{name}", hints)
            setattr(made, name, classmethod(checked) if isinstance(member, classmethod) else checked)
        return made

    return decorate


def _method_checked(method: Callable[..., Any], call: str, hints: _Hints) -> Callable[..., Any]:
    of_object, *parameters = signature(method).parameters.values()
    del of_object
    fitting = Signature(parameters)

    @wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_misfit(fitting, call, args, kwargs, hints)
        return method(self, *args, **kwargs)

    return checked


def _with_needed(fitting: Signature, needed: Sequence[str]) -> Signature:
    """Take the defaults of arguments away."""
    parameters = fitting.parameters.items()
    return fitting.replace(
        parameters=[one.replace(default=Parameter.empty) if name in needed else one for name, one in parameters]
    )


def _refuse_misfit(
    fitting: Signature,
    call: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    hints: _Hints,
) -> None:
    try:
        fitting.bind(*args, **kwargs)
    except TypeError:
        sentence = _unknown(fitting, kwargs, hints.instead) or _misplaced(fitting, args, kwargs)
        refusal = ArgumentError(f"{call} {sentence or _missing(fitting, args, kwargs, hints)}")
    else:
        return
    raise refusal


def _unknown(fitting: Signature, kwargs: Mapping[str, Any], instead: Mapping[str, str]) -> str | None:
    """Say what was meant by the first argument that there is not."""
    known = list(fitting.parameters)
    name = next((name for name in kwargs if name not in known), None)
    if name is None:
        return None
    if name in instead:
        return f"has no argument {shown(name)}; {instead[name]}."
    elsewhere = [word for word in known if word in _ELSEWHERE.get(name, ()) or word.startswith(name)]
    near = elsewhere or get_close_matches(name, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    return f"has no argument {shown(name)}{meant} Its arguments are {_listed(known)}."


def _misplaced(fitting: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Say which arguments are given by name, where too many are not, or which one is given twice."""
    placed = _placed(fitting)
    twice = [name for name in placed[: len(args)] if name in kwargs]
    if twice:
        return f"is given {twice[0]} twice, by position and by name; give it once."
    if len(args) <= len(placed):
        return None
    named = [name for name in fitting.parameters if name not in placed]
    by_place = f"only {_listed(placed)}" if placed else "no arguments"
    return f"takes {by_place} by position{f'; give {_listed(named)} by name' if named else ''}."


def _missing(fitting: Signature, args: Sequence[Any], kwargs: Mapping[str, Any], hints: _Hints) -> str:
    """Say what is missing and what each of it is."""
    given = {*_placed(fitting)[: len(args)], *kwargs}
    lacking = [name for name, one in fitting.parameters.items() if name not in given and one.default is Parameter.empty]
    chosen = {name: f" With {name}={AUTO!r} it is chosen within the budget." for name in hints.auto}
    meanings = [
        f"{name} is {hints.meanings[name]}.{chosen.get(name, '')}" for name in lacking if name in hints.meanings
    ]
    return " ".join([f"needs {_listed(lacking)}.", *meanings])


def _placed(fitting: Signature) -> list[str]:
    return [name for name, one in fitting.parameters.items() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
