"""Errors in the words of the command line: where a sentence names an argument of Python, the option takes its place.

One list for all commands, so that what raises an error need not know who asked.
"""

import re

_QUOTED = r"(['\"])([^'\"]*)\1"
_OPTIONS = tuple(
    (re.compile(words), option)
    for words, option in (
        (rf"\babsolute=\{{{_QUOTED}: math\.inf\}}", r"--absolute-error \2 inf"),
        (rf"\babsolute=\{{{_QUOTED}: \.\.\.\}}", r"--absolute-error \2 NUMBER"),
        (rf"\btotals=\{{{_QUOTED}: \.\.\.\}}", r"--total \2 NUMBER"),
        (r"\bgive error=", "give --error"),
        (r"\bWith public_keys= ", "With --public-keys "),
        (r"\bkeys_of_user\b", "--keys-of-user"),
        (r"\bengine_errors_to\b", "--engine-errors-to"),
        (r"\banother name with name=", "another name with AS"),
        (r"\bdatetime\.date\(2026, 1, 31\)", "'2026-01-31'"),
        (r"\bkeys=\{'name': (.*)\}\.$", r"--key-as name \1."),
        (r"\bseveral columns are a list: \[.*\]\.$", "repeat the option for several columns."),
    )
)


def in_options(sentence: str) -> str:
    """Say in options what a sentence says in arguments.

    >>> in_options("delta is 0; it must be above 0. With public_keys= it may be 0.")
    'delta is 0; it must be above 0. With --public-keys it may be 0.'
    """
    for pattern, option in _OPTIONS:
        sentence = pattern.sub(option, sentence)
    return sentence
