"""Which tests of all engines one of them cannot pass, and why: they are left out on it, and nowhere else.

Run as a program, it prints the list as a table.
"""

import sys

STATEMENTS = "statements and computed keys are refused"
FILES = "it reads tables of its own database, and no files"
MEMORY = "it reads tables of its own database, where such values do not exist"
NESTED = "its own types of bytes, lists and structures are refused"
LACKING = {
    "postgresql": {
        "tests/engines/test_computed_keys.py": STATEMENTS,
        "tests/engines/test_everywhere.py::test_hostile_names_are_only_columns": "no name of a column has more than 63 bytes",
        **dict.fromkeys(
            (
                f"tests/engines/test_everywhere.py::test_keys_of_a_type_are_selected_counted_and_come_back_as_they_were[{kind}]"
                for kind in ("bytes", "lists", "lists of text", "structs")
            ),
            NESTED,
        ),
        # The same measures are tested one by one in test_statistics.py.
        "tests/engines/test_measures_together.py": "a boolean column is a number or is compared, and here it is both",
        "tests/engines/test_paper.py::test_about_862_keys": FILES,
        "tests/engines/test_paper.py::test_plume_is_as_accurate": FILES,
        "tests/engines/test_paper.py::test_without_noise_plume_equals": FILES,
        "tests/engines/test_sql.py": STATEMENTS,
        "tests/engines/test_totals.py::test_a_statement_without_group_by_is_the_same_total": STATEMENTS,
        "tests/fuzz/test_statements.py": STATEMENTS,
        "tests/fuzz/test_types.py": "tests/fuzz/test_postgresql.py has its own types",
        "tests/privacy/test_hostile_values.py::test_a_far_day_or_moment_in_a_statement_never_fails": STATEMENTS,
        "tests/privacy/test_hostile_values.py::test_a_pattern_of_ten_thousand": STATEMENTS,
        "tests/privacy/test_hostile_values.py::test_a_value_does_not_decide_how_nan_of_others_is_read_from_a_file": FILES,
        "tests/privacy/test_hostile_values.py::test_far_moments_and_spoilt_text_in_memory": MEMORY,
        "tests/privacy/test_python_objects.py": MEMORY,
        "tests/unit/cli/test_run.py": FILES,
        "tests/unit/statement/": STATEMENTS,
        "tests/unit/test_key_expressions.py": STATEMENTS,
    }
}


def lacks(engine: str, test: str) -> bool:
    """Return whether an engine lacks what a test needs."""
    return any(test.startswith(left_out) for left_out in LACKING.get(engine, {}))


if __name__ == "__main__":
    sys.stdout.write("| engine | tests that are left out | why |\n|---|---|---|\n")
    for name, tests in LACKING.items():
        for test, reason in tests.items():
            sys.stdout.write(f"| {name} | `{test.removeprefix('tests/')}` | {reason} |\n")
