"""The tables that make a setting, a strategy and a measure one line each: what they list is all there is, and it is listed once."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import pytest

import plume
from plume.cli.commands import run
from plume.cli.query_file import read_query_file
from plume.explanation import Explanation
from plume.ledger import request
from plume.mechanisms.forms import ALIASES, FORMS
from plume.selection.rule import rule_of
from plume.settings import AUTO, NOISES, SETTINGS, STRATEGIES, Setting, SettingKind, values_of
from plume.statement import settings as statement_settings

OF_BUDGET = ("epsilon", "delta")
NAMES = [setting.name for setting in SETTINGS]
QUERY = plume.Query(
    user="u", keys="k", measures=[plume.count(2)], max_keys_per_user=3, budget=plume.Budget(1.5, 1e-6), min_users=4
)
# As they would be written into a file, none of them the default.
IN_FILES: dict[SettingKind, str] = {
    SettingKind.NAME: '"text"',
    SettingKind.NAMES: '["text"]',
    SettingKind.CONDITION: '"v > 1"',
    SettingKind.KEYS: '"keys.csv"',
    SettingKind.WHOLE: "7",
    SettingKind.SIZE: "1000",
    SettingKind.LIMIT: '"auto"',
    SettingKind.NUMBER: "0.5",
    SettingKind.WORD: '"gaussian"',
    SettingKind.WEIGHTS: "{selection = 2}",
    SettingKind.EXPRESSIONS: "{month = 'LOWER(v)'}",
}


def test_every_field_of_a_query_is_a_setting() -> None:
    assert {field.name for field in fields(plume.Query)} - {"budget"} == set(NAMES) - set(OF_BUDGET)
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize(
    "field", [field for field in fields(plume.Query) if field.name != "budget"], ids=lambda f: f.name
)
def test_a_setting_has_the_default_of_its_field(field: Any) -> None:
    (setting,) = (setting for setting in SETTINGS if setting.name == field.name)
    if setting.name == "max_keys_per_user":  # its default is for queries without keys; with keys it must be given
        assert (setting.required, field.default) == (True, 1)
        return
    assert setting.required == (field.default is MISSING)
    assert setting.required or setting.default == field.default


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_is_an_option_and_a_line_of_a_file_and_in_the_record(setting: Setting, tmp_path: Path) -> None:
    (option,) = (param for param in run.params if param.name == setting.name)
    assert isinstance(option, click.Option)
    assert (option.opts, option.help) == ([setting.flag], setting.help)
    path = tmp_path / "query.toml"
    path.write_text(f"{setting.name} = {IN_FILES[setting.kind]}", encoding="utf-8")
    assert list(read_query_file(path)) == [setting.name]
    assert setting.name in plume.explain(QUERY).facts()["query"]


def test_the_record_holds_all_that_was_asked() -> None:
    recorded = plume.explain(QUERY).record()["query"]
    assert (recorded["epsilon"], recorded["delta"], recorded["min_users"]) == (1.5, 1e-6, 4)
    assert (recorded["selection"], recorded["noise"], recorded["composition"], recorded["shares"]) == (
        "auto",
        "auto",
        "tight",
        {},
    )


def test_a_setting_that_comes_later_leaves_the_hash_of_old_questions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request.Request(plume.explain(QUERY), "visits")
    before = asked.digest
    later = Setting("later", SettingKind.WHOLE, "A setting of a later version.", default=1)
    monkeypatch.setattr(request, "SETTINGS", (*SETTINGS, later))
    monkeypatch.setattr(request, "values_of", lambda query: values_of(query) | {"later": 1})
    assert asked.digest == before
    monkeypatch.setattr(request, "values_of", lambda query: values_of(query) | {"later": 2})
    assert asked.digest != before


def test_options_of_statements_are_settings_of_queries() -> None:
    assert set(statement_settings._KNOWN) == {setting.sql for setting in SETTINGS} - {None}


def noises_of(strategy: str) -> tuple[str, ...]:
    """Accounts are charged for Gaussian measures only, and a released number has discrete Laplace noise."""
    rule = rule_of(strategy)
    if rule.composed:
        return NOISES
    return ("gaussian",) if rule.is_charged_to_accounts else ("laplace",)


@pytest.mark.parametrize(
    ("strategy", "noise"),
    [
        (strategy, noise)
        for strategy in STRATEGIES
        for noise in (AUTO, *NOISES)
        if noise == AUTO or noise in noises_of(strategy)
    ],
)
def test_every_strategy_is_scaled_in_each_way_that_it_offers(strategy: str, noise: str) -> None:
    query = plume.Query(
        user="u",
        keys="k",
        measures=[plume.count(2), plume.users()],
        max_keys_per_user=1 if rule_of(strategy).releases_users else 3,
        budget=plume.Budget(1, 1e-6),
        selection=strategy,
        noise=noise,
    )
    explanation: Explanation = plume.explain(query)
    assert explanation.spent.epsilon <= 1
    assert len(explanation.selection) == (2 if strategy.startswith("two_round_") else 1)
    assert rule_of(strategy).gaussian == (rule_of(strategy).shape is None)


def test_every_measure_is_public_under_its_word() -> None:
    assert all(getattr(plume, word) is form.make for word, form in FORMS.items())
    makers = {
        name for name in plume.__all__ if getattr(getattr(plume, name), "__module__", "").startswith("plume.mechanisms")
    }
    assert makers == set(FORMS)


def test_ledgers_know_each_kind_of_measure_by_a_word_of_its_own() -> None:
    """These words are in ledgers for ever."""
    words = {
        "CountRecords": "count",
        "CountUsers": "users",
        "SumOfTotals": "sum",
        "Mean": "mean",
        "Variance": "variance",
        "StandardDeviation": "stddev",
        "Quantiles": "quantiles",
        "Extreme": "extreme",
        "Histogram": "histogram",
        "VectorSum": "vector_sum",
    }
    arguments = {"quantiles": ("v", [0.5], 0, 1), "histogram": ("v", [0, 1]), "vector_sum": (["v"], 1), "count": (1,)}
    made = [form.make(*arguments.get(word, () if word == "users" else ("v", 0, 1))) for word, form in FORMS.items()]
    assert {type(measure).__name__: measure.word for measure in made} == words


@pytest.mark.parametrize(("alias", "word"), ALIASES.items())
def test_python_points_to_the_measure_that_others_call_otherwise(alias: str, word: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{alias}'; did you mean plume.{word}"):
        getattr(plume, alias)


@pytest.mark.parametrize(("name", "word"), [("quantile", "quantiles"), ("Budgets", "Budget"), ("explian", "explain")])
def test_python_points_to_the_public_name_that_is_nearest(name: str, word: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; did you mean plume\.{word}\?$"):
        getattr(plume, name)


def test_an_alias_is_not_the_word_of_another_measure() -> None:
    assert not ALIASES.keys() & FORMS.keys()
