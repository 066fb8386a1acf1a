from pathlib import Path

import pyarrow as pa

import plume

ROWS = pa.table({"u": [str(n) for n in range(300)], "k": ["x"] * 200 + ["y"] * 100})


def test_a_limit_that_was_chosen_is_kept_with_the_release_and_paid_for(tmp_path: Path) -> None:
    """The histogram decides between limits anew in each run; what was released once stays what it is."""
    ledger = plume.Ledger.create(tmp_path / "budget.ledger")
    ledger.add_dataset("searches", plume.Budget(epsilon=3, delta=1e-5))
    asked = plume.Query(
        user="u", keys="k", measures=plume.users(), max_keys_per_user="auto", budget=plume.Budget(1, 1e-6)
    )
    releases = [plume.run(asked, ROWS, ledger=ledger.dataset("searches"), release_id="first") for _ in range(2)]
    assert releases[0].rows.equals(releases[1].rows)
    assert releases[0].chosen == releases[1].chosen
    assert releases[0].chosen["max_keys_per_user"] >= 1
    assert releases[0].record() == releases[1].record()
    assert [part["part"] for part in releases[1].record()["spent"]] == ["selection", "max_keys_per_user", "users"]
    assert [str(entry.kind) for entry in ledger.history()].count("released") == 1
