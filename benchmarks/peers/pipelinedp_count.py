"""PipelineDP on its local backend, with its default selection and noise, or with Gaussian ones, which suit many keys per user."""

import math

import pandas as pd
import pipeline_dp
import timing

SELECTIONS = {
    "LAPLACE": pipeline_dp.PartitionSelectionStrategy.TRUNCATED_GEOMETRIC,
    "GAUSSIAN": pipeline_dp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING,
}


def count(source: str, target: str, limit: int, noise: str) -> None:
    """Count users per key; the accountant gives half of epsilon to the selection, and the delta that the noise does not need."""
    rows = list(pd.read_parquet(source, columns=["user", "key"]).itertuples(index=False, name=None))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=math.log(3), total_delta=1e-5)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    asked = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT],
        noise_kind=pipeline_dp.NoiseKind[noise],
        partition_selection_strategy=SELECTIONS[noise],
        max_partitions_contributed=limit,
        max_contributions_per_partition=1,
    )
    columns = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda _: 1,
    )
    answer = engine.aggregate(rows, asked, columns)
    accountant.compute_budgets()
    counts = [(key, metrics.count) for key, metrics in answer]
    pd.DataFrame(counts, columns=["key", "count"]).astype({"key": "int64", "count": "float64"}).to_parquet(target)


if __name__ == "__main__":
    timing.main(count)
