"""One run with a store, on executors whose Python has no Plume; prints what it says and which steps began."""

import json
import os
import sys

os.environ["PYSPARK_PYTHON"] = sys._base_executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyarrow as pa

import plume
from plume.engines.spark import Spark
from questions import asking
from sparks import start


def main(store: str) -> None:
    session = start("spark")
    steps: list[str] = []
    rows = pa.table({"u": [1, 2, 3], "k": ["x"] * 3})
    try:
        plume.run(asking(), rows, engine=Spark(session, lookup="store", store=store), on_step=steps.append)
        said = ""
    except plume.PlumeError as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps({"said": said, "steps": steps}))  # noqa: T201 - the result
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
