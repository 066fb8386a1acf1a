"""A notebook runs in a kernel as JupyterLab brings it, without ipywidgets."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat

RUN = """
query = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.users()],
    max_keys_per_user=6,
    budget=plume.Budget(epsilon=1.1, delta=1e-6),
)
release = plume.run(query, recipe_searches(2_000, seed=1))
"""
WATCHED = """
from plume import progress

progress._SECONDS = 0.001
print("before")
plume.run(query, recipe_searches(2_000, seed=1), progress=True)
print("after")
"""
CHOSEN = """
display(plume.expect(query), plume.need(query, users=500, error=0.05))
display(plume.tune(query, recipe_searches(2_000, seed=1), limits=[1, 16]))
"""
KEPT = """
ledger = plume.Ledger.create("budget.ledger", datasets={"searches": plume.Budget(3, 1e-5)})
dataset = ledger.dataset("searches")
plume.run(query, recipe_searches(2_000, seed=1), ledger=dataset, release_id="monday")
display(ledger, dataset, dataset.plan(query), ledger.history())
"""
CELLS = (
    "import plume\nfrom plume.synthetic import recipe_searches",
    RUN,
    "release",
    "plume.explain(query)",
    WATCHED,
    CHOSEN,
    KEPT,
)


def test_there_is_no_ipywidgets_here() -> None:
    assert find_spec("ipywidgets") is None


def test_a_notebook_runs_and_shows_a_release_and_keeps_nothing_of_its_progress(tmp_path: Path) -> None:
    path = tmp_path / "notebook.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS]), path)
    # The kernel of this environment, whatever others are installed for the user.
    environment = os.environ | {"JUPYTER_DATA_DIR": str(tmp_path), "JUPYTER_PREFER_ENV_PATH": "1"}
    command = [sys.executable, "-m", "jupyter", "execute", "--inplace", str(path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr
    cells = nbformat.read(path, as_version=4).cells
    shown = ["".join(output.get("data", {}).get("text/html", "") for output in cell.outputs) for cell in cells]
    assert "differential privacy" in shown[2]
    assert "differential privacy" in shown[3]
    assert [output.get("text", output.get("data")) for output in cells[4].outputs] == [
        "before\n",
        {"text/plain": ""},
        "after\n",
    ]
    assert [output.output_type for output in (*cells[5].outputs, *cells[6].outputs)] == ["display_data"] * 7
    assert all('<div class="plume">' in output.data["text/html"] for output in (*cells[5].outputs, *cells[6].outputs))
    assert "NOT PRIVATE" in shown[5]
    assert "released: users by recipe" in shown[6]
