"""OpenDP by its Polars interface: one mechanism noises counts and drops small ones, so it has all of epsilon."""

import math

import opendp.prelude as dp
import polars as pl
import timing

dp.enable_features("contrib")


def count(source: str, target: str, limit: int) -> None:
    """Count users per key: one row of each user and key, then a sample of these rows, since sampling keys fails at release."""
    context = dp.Context.compositor(
        data=pl.scan_parquet(source).select("user", "key"),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user")),
        privacy_loss=dp.loss_of(epsilon=math.log(3), delta=1e-5),
        split_evenly_over=1,
    )
    bounded = context.query().truncate_per_group(1, by=["key"]).truncate_per_group(limit)
    bounded.group_by("key").agg(dp.len()).release().collect().rename({"len": "count"}).write_parquet(target)


if __name__ == "__main__":
    timing.main(count)
