"""SmartNoise SQL on pandas: counting distinct users is also what it drops keys by, so this has all of epsilon."""

import math

import pandas as pd
import snsql
import timing

ASKED = "SELECT k, COUNT(DISTINCT uid) AS n FROM S.D GROUP BY k"


def count(source: str, target: str, limit: int) -> None:
    """Count users per key; its bound is on rows, so each user and key becomes one row first."""
    rows = pd.read_parquet(source, columns=["user", "key"]).drop_duplicates().set_axis(["uid", "k"], axis="columns")
    table = {
        "max_ids": limit,
        "sample_max_ids": True,
        "censor_dims": True,
        "row_privacy": False,
        "uid": {"name": "uid", "type": "int", "private_id": True},
        "k": {"name": "k", "type": "int"},
    }
    privacy = snsql.Privacy(epsilon=math.log(3), delta=1e-5)
    _, *answer = snsql.from_df(rows, privacy=privacy, metadata={"": {"S": {"D": table}}}).execute(ASKED)
    pd.DataFrame(answer, columns=["key", "count"]).astype({"key": "int64", "count": "float64"}).to_parquet(target)


if __name__ == "__main__":
    timing.main(count)
