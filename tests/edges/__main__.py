"""Hold every elementwise op, reduction, activation, loss and normalization to high precision: `nox -s search -- edges`.

It prints each class of disagreement (op, what, backend, way) with its first examples, and exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings

import edge_pairs
from edge_search import DTYPES, WAYS, Report, search

import multiop

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="names of ops, with commas")
    parser.add_argument("--backends", default="torch,jax,tensorflow")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--pairs", metavar="TEXT", help="compile pairs of ops instead, those with TEXT in their name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    backends, dtypes, ways = (x.split(",") for x in (options.backends, options.dtypes, options.ways))
    for backend in sorted(backends, reverse=True):  # torch before TensorFlow, in one process
        importlib.import_module(backend)
    multiop.set_backend(backends[0])
    multiop.enable_x64()
    if options.pairs is None:
        report = search([op for op in options.ops.split(",") if op], backends, dtypes, ways)
    else:
        report = Report()
        edge_pairs.check(report, backends, dtypes, options.pairs)
    report.show(options.examples)
    sys.exit(1 if report.classes else 0)
