"""Run every benchmark on every installed backend, and keep one JSON file and a plot per suite.

python benchmarks --rounds 31                        # about five minutes; benchmarks/results/all.json
python benchmarks --write benchmarks/measured.md        # and put the summary into the document
python benchmarks --rounds 7 --backends torch        # a quick look
python benchmarks --all --backends torch             # every op with a native counterpart, in search of outliers
python benchmarks --from benchmarks/results/all.json --write benchmarks/measured.md   # the document alone
"""

import sys

from harness import run

if __name__ == "__main__":
    if "--all" in sys.argv:
        sys.argv.remove("--all")
        run(["every_op"], __doc__, rounds=15)
    else:
        run(["import", "ops", "autodiff", "scale", "domain", "training", "launch", "ported", "pinned"], __doc__)
