"""How options read numbers: click's own types say 'valid float' and 'valid integer' of what people call numbers."""

from typing import Any

import click


class _Number(click.types.FloatParamType):
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number, or say what would be one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number; write one such as 1.1 or 1e-5.", param, ctx)


class _WholeNumber(click.types.IntParamType):
    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a whole number, or say what would be one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number; write one such as 16.", param, ctx)


NUMBER, WHOLE = _Number(), _WholeNumber()
