"""What histograms have in common by which numbers are chosen: a row for each number on offer, all of them always."""

import math

import pyarrow as pa

from plume.noise.gaussian import RoundedGaussian

BUCKET = "bucket"
"""The column that numbers the rows of a histogram, from 0 on."""
# Rows below what noise alone may give are taken to be empty; that happens to any of them with a chance of 2 % (algorithms 5.2).
_CHANCE_OF_NOISE = 0.02


def buckets(rows: int) -> pa.Table:
    """List the rows that a histogram has, whatever the data are."""
    return pa.table({BUCKET: pa.array(range(rows), pa.int64())})


def most_of_noise(noise: RoundedGaussian, rows: int) -> float:
    """Say what noise hardly ever exceeds in any of so many rows."""
    return noise.standard_deviation * math.sqrt(2 * math.log(rows / _CHANCE_OF_NOISE))
