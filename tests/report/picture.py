"""The pictures in the documents, taken anew: `.venv/bin/python tests/report/picture.py docs/report.png docs/notebook.png`."""

import sys
import tempfile
from base64 import b64encode
from pathlib import Path

from playwright.sync_api import sync_playwright

import plume
from plume.synthetic import recipe_searches

sys.path.insert(0, str(Path(__file__).parents[1]))
from browsers import launch

QUERY = plume.Query(
    user="user_id",
    keys="recipe",
    measures=[plume.count(max_per_key=3), plume.users()],
    max_keys_per_user=6,
    budget=plume.Budget(epsilon=1.1, delta=1e-6),
)
CELLS = """<!doctype html><style>
body { margin: 20px; font: 14px "DejaVu Sans", sans-serif; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee; } }
</style>"""


def report(path: Path) -> None:
    """Write the report of the README's own query."""
    plume.run(QUERY, recipe_searches(20_000, seed=1)).report(path, overwrite=True)


def notebook(path: Path) -> None:
    """Write what a notebook shows of the same, and of the dataset it is charged to."""
    ledger = plume.Ledger.create(path.with_suffix(".ledger"), datasets={"searches": plume.Budget(3, 1e-5)})
    dataset = ledger.dataset("searches")
    release = plume.run(QUERY, recipe_searches(20_000, seed=1), ledger=dataset, release_id="monday")
    path.write_text(CELLS + "<br>".join(shown._repr_html_() for shown in (release, dataset)), encoding="utf-8")


def take_picture(page: Path, picture: Path) -> None:
    """Show a page on a desk and on a phone, side by side, one by day and one by night."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        desk = browser.new_page(viewport={"width": 900, "height": 900}, color_scheme="light")
        phone = browser.new_page(viewport={"width": 390, "height": 900}, color_scheme="dark")
        shots = []
        for shown in (desk, phone):
            shown.goto(page.as_uri())
            shots.append(shown.screenshot())
        both = browser.new_page(viewport={"width": 1306, "height": 900})
        both.goto("about:blank")
        both.set_content(
            "<style>body{margin:0;display:flex;gap:16px;background:#cfcbdc}</style>"
            + "".join(f"<img src='data:image/png;base64,{b64encode(shot).decode()}'>" for shot in shots)
        )
        both.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    for picture, write in zip(map(Path, sys.argv[1:]), (report, notebook), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "page.html")
            take_picture(Path(folder) / "page.html", picture)
