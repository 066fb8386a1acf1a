"""`python -m plume` is the `plume` command."""

from plume.cli.main import main

if __name__ == "__main__":
    main(prog_name="plume")
