"""Draws that move together are found, and draws that do not are let be: 300 times, where 3e-4 false alarms are expected at most."""

import numpy as np
import pytest

from plume.auditing.independence import apart, of_different_columns, of_different_keys

SIZE = 4_000
DICE = np.random.default_rng(1)
LAWS = {
    "Gaussian": lambda: DICE.normal(size=SIZE),
    "Laplace": lambda: DICE.laplace(size=SIZE),
    "without a variance": lambda: DICE.standard_cauchy(size=SIZE),
    "whole numbers": lambda: np.rint(DICE.laplace(size=SIZE)),
    "hardly ever anything but 0": lambda: np.rint(DICE.normal(scale=0.2, size=SIZE)),
    "always 0": lambda: np.zeros(SIZE),
}


@pytest.mark.parametrize("law", LAWS)
def test_independent_columns_are_let_be(law: str) -> None:
    assert all(apart(of_different_columns(LAWS[law](), LAWS[law]())) for _ in range(40))


@pytest.mark.parametrize("law", LAWS)
def test_independent_keys_are_let_be(law: str) -> None:
    assert all(apart(of_different_keys(LAWS[law]())) for _ in range(10))


def test_one_draw_scaled_for_two_columns_is_found() -> None:
    drawn = DICE.normal(size=SIZE)
    assert not apart(of_different_columns(np.rint(3 * drawn), np.rint(700 * drawn)))


def test_one_draw_turned_into_two_laws_is_found() -> None:
    drawn = DICE.normal(size=SIZE)
    assert not apart(of_different_columns(drawn, np.sign(drawn) * drawn**2))


def test_columns_that_share_a_fifth_of_their_variance_are_found_every_time() -> None:
    shared, one, other = DICE.normal(size=(3, 40, SIZE))
    pairs = zip(shared * 0.2**0.5 + one * 0.8**0.5, shared * 0.2**0.5 + other * 0.8**0.5, strict=True)
    assert not any(apart(of_different_columns(*pair)) for pair in pairs)


def test_columns_that_share_their_sizes_alone_are_found() -> None:
    sizes = np.abs(DICE.normal(size=SIZE))
    one, other = DICE.choice([-1, 1], size=(2, SIZE))
    assert not apart(of_different_columns(one * sizes, other * sizes))


def test_a_column_that_has_the_draws_of_the_key_before_is_found() -> None:
    drawn = DICE.normal(size=SIZE)
    assert not apart(of_different_columns(drawn, np.roll(drawn, 1)))


@pytest.mark.parametrize("piece", [1, 2, 256, 1024])
def test_pieces_that_are_drawn_twice_are_found(piece: int) -> None:
    pieces = DICE.normal(size=(SIZE // (2 * piece), piece))
    assert not apart(of_different_keys(np.repeat(pieces, 2, axis=0).ravel()))
