"""Look for differences between backends, modes and compilers in random programs.

python tests/fuzz --programs 500 --seed 0                         # hours: on every backend, compared with each other
python tests/fuzz --programs 50 --seed 1000 --backends torch,jax  # other programs
python tests/fuzz --seed 1234 --programs 1 --show                 # the source of one

The exit status is 0 if there is no difference, 1 if there is one. Each is made smaller and printed as source.
"""

from __future__ import annotations

import argparse
import collections
import gc
import logging
import os
import sys
import time
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="number of the first")
    parser.add_argument("--backends", default="torch,jax,tensorflow", help="comma-separated")
    parser.add_argument("--dtype", default="float64", help="dtype of the inputs; derivatives need float64")
    parser.add_argument(
        "--inductor", type=int, default=10, metavar="N", help="compile every Nth with Inductor; 0: none"
    )
    parser.add_argument("--show", action="store_true", help="print each source")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("tensorflow").setLevel(logging.CRITICAL)  # it logs what it then does otherwise
    backends = asked.backends.split(",")
    if "torch" in backends:
        import torch  # noqa: F401  # before TensorFlow
    from random_programs import draw, look, minimised

    found, notes, started = [], [], time.monotonic()
    for seed in range(asked.seed, asked.seed + asked.programs):
        program = draw(seed)
        if asked.show:
            print(f"# {seed}\n{program.source}", flush=True)
        options = {"dtype": asked.dtype, "inductor": asked.inductor > 0 and seed % asked.inductor == 0}
        difference = look(program, backends, notes=notes, **options)
        if difference:
            small = minimised(program, difference, **options)
            last = look(small, difference.backends, only=difference.what, **options) or difference
            told = last.message.replace("\n", "\n# ")
            print(f"# program {seed} of {len(program)} steps: {last.what}\n# {told}")
            print(f"# inputs: seed={seed}, traits={sorted(small.traits)}\n{small.source}", flush=True)
            found.append(seed)
        if (seed - asked.seed) % 10 == 9:
            spent = time.monotonic() - started
            so_far = f"{seed + 1 - asked.seed} programs in {spent:.0f} s, {len(found)} differ"
            print(f"# {so_far}", file=sys.stderr, flush=True)
            _forget()
    for note, count in sorted(collections.Counter(notes).items()):
        print(f"# proves nothing in {count} of {asked.programs}: {note}")
    told = f"{len(found)} differ: {found}" if found else "none differs"
    print(f"{asked.programs} programs from {asked.seed} on {', '.join(backends)} in {asked.dtype}: {told}")
    return 1 if found else 0


def _forget() -> None:
    """Drop what the frameworks have compiled."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if "torch._dynamo" in sys.modules:
        sys.modules["torch"].compiler.reset()
    gc.collect()


if __name__ == "__main__":
    sys.exit(main())
