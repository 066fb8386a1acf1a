"""The picture of a report in the README, taken anew: `.venv/bin/python tests/report/picture.py docs/report.png`."""

import sys
import tempfile
from base64 import b64encode
from pathlib import Path

from playwright.sync_api import sync_playwright

import plume
from plume.synthetic import recipe_searches

sys.path.insert(0, str(Path(__file__).parents[1]))
from browsers import launch


def report(path: Path) -> None:
    """Write the report of the README's own query."""
    query = plume.Query(
        user="user_id",
        keys="recipe",
        measures=[plume.count(max_per_key=3), plume.users()],
        max_keys_per_user=6,
        budget=plume.Budget(epsilon=1.1, delta=1e-6),
    )
    plume.run(query, recipe_searches(20_000, seed=1)).report(path, overwrite=True)


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
    with tempfile.TemporaryDirectory() as folder:
        report(Path(folder) / "report.html")
        take_picture(Path(folder) / "report.html", Path(sys.argv[1]))
