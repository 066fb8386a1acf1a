"""A program that makes ledgers on disks of many sizes, each in memory: `creating.py FOLDER`, in a mount namespace of its own.

It prints, size by size, whether the command said it was done, and which files with which datasets are there.
"""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

import plume
from plume.cli.main import main

SIZES = range(4, 100, 8)


def made_on(folder: Path, kilobytes: int) -> tuple[bool, dict[str, list[str]]]:
    """Make a ledger on a disk of its own."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(folder)], check=True)  # noqa: S603, S607
    done = CliRunner().invoke(main, ["ledger", "create", str(folder / "l"), "--dataset", "d", "--epsilon", "1"])
    found = {path.name: list(plume.Ledger(path).datasets()) for path in folder.iterdir()}
    subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607
    return done.exit_code == 0, found


if __name__ == "__main__":
    print(json.dumps([made_on(Path(sys.argv[1]), kilobytes) for kilobytes in SIZES]))
