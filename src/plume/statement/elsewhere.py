"""What other systems call aggregates, clauses and options that go by another name here: a refusal says what to write instead.

Nothing here is understood as what it stands for. All of it is refused anyway; the lists only choose the sentence.
"""

from collections.abc import Mapping

_PERCENTILE = "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 60))"
_USERS = "COUNT(DISTINCT user_id), where user_id is the privacy unit"
_QUANTILES = (
    "one PERCENTILE_CONT(x, 0.25, contribution_bounds_per_row => (0, 60)) for each quantile, here 0.25; several of the same x "
    "and bounds cost as much as one"
)
_VARIANCE = "VAR_POP(x, contribution_bounds_per_row => (0, 60))"
_DEVIATION = "STDDEV_POP(x, contribution_bounds_per_row => (0, 60))"
_MEAN = "AVG(x, contribution_bounds_per_group => (0, 60))"
_CONDITION = "COUNT(IF(condition, 1, NULL), contribution_bounds_per_group => (0, 5))"
_ENDS = "; the true one is a single value of a single user"

FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("MEDIAN", "PERCENTILE_DISC", "QUANTILE_CONT", "QUANTILE_DISC", "QUANTILE"), _PERCENTILE),
    **dict.fromkeys(("PERCENTILE", "APPROX_PERCENTILE", "PERCENTILE_APPROX", "ANON_PERCENTILE_CONT"), _PERCENTILE),
    **dict.fromkeys(("APPROX_QUANTILE", "APPROX_QUANTILES", "ANON_QUANTILES"), _QUANTILES),
    **dict.fromkeys(("APPROX_COUNT_DISTINCT", "APPROX_DISTINCT"), _USERS),
    **dict.fromkeys(("VARIANCE", "VAR_SAMP", "VARIANCE_SAMP", "ANON_VAR_POP"), _VARIANCE),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP", "STD", "ANON_STDDEV_POP"), _DEVIATION),
    **dict.fromkeys(("COUNTIF", "COUNT_IF"), _CONDITION),
    **dict.fromkeys(("MEAN", "ANON_AVG"), _MEAN),
    **dict.fromkeys(
        ("STRING_AGG", "ARRAY_AGG", "GROUP_CONCAT", "LISTAGG"),
        "the column into GROUP BY: values are shown as groups only",
    ),
    "ANON_COUNT": "COUNT(*, contribution_bounds_per_group => (0, 5))",
    "ANON_SUM": "SUM(x, contribution_bounds_per_group => (0, 60))",
}
"""Aggregates that are not known at all, and what to write in the private SELECT."""
ENDS: Mapping[str, str] = {
    "MIN": f"PERCENTILE_CONT(x, 0.01, contribution_bounds_per_row => (0, 60)){_ENDS}",
    "MAX": f"PERCENTILE_CONT(x, 0.99, contribution_bounds_per_row => (0, 60)){_ENDS}",
}
"""Aggregates that are known below the private SELECT only, and what to write in it."""
AROUND: Mapping[str, str] = {
    "Filter": f"in the place of FILTER write {_CONDITION}",
    "WithinGroup": f"in the place of WITHIN GROUP write {_PERCENTILE}",
}
"""What may stand around an aggregate elsewhere, by the names of sqlglot's trees."""
GROUPINGS: Mapping[str, str] = {"Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS"}
"""What GROUP BY may hold elsewhere, by the names of sqlglot's trees."""
CLAUSES: Mapping[str, str] = {
    "ANONYMIZATION": "WITH ANONYMIZATION is an earlier name of this clause",
    "AGGREGATION_THRESHOLD": "WITH AGGREGATION_THRESHOLD adds no noise, so it is not differential privacy",
}
"""What may stand behind SELECT WITH elsewhere."""
OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("kappa", "max_keys_per_user"), "max_groups_contributed"),
    **dict.fromkeys(("k_threshold", "min_users"), "min_privacy_units_per_group"),
    **dict.fromkeys(("user", "user_id", "unit"), "privacy_unit_column"),
    "selection": "group_selection_strategy",
}
"""Options by their earlier names, and by those of Python."""
