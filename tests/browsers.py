"""The Chromium that reports are tested in. Run as a program, it succeeds if there is one: `make browser` installs one otherwise."""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium refuses its sandbox to root; the rest keeps it from looking for hosts of its own.
QUIETLY = ("--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
AS_ROOT = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


def launch(playwright: Playwright) -> Browser:
    """Start the Chromium of this machine, or the one that Playwright has fetched; without one a test must fail, not pass unseen."""
    found = find(playwright)
    if found is None:
        raise RuntimeError("no Chromium here; `make browser` installs one.")
    return playwright.chromium.launch(executable_path=found, args=[*QUIETLY, *AS_ROOT])


def find(playwright: Playwright) -> str | None:
    """Find a Chromium."""
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    fetched = playwright.chromium.executable_path
    return installed or (fetched if Path(fetched).exists() else None)


if __name__ == "__main__":
    with sync_playwright() as started:
        sys.exit(find(started) is None)
