"""Made-up data to try things on: the paper's heavy-tailed dataset, and recipe searches."""

from plume.synthetic.dataset import paper_batches, write_paper_data
from plume.synthetic.recipes import RECIPES, recipe_searches
from plume.synthetic.zipf_mandelbrot import ZipfMandelbrot

__all__ = ["RECIPES", "ZipfMandelbrot", "paper_batches", "recipe_searches", "write_paper_data"]
