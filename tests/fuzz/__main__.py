"""Look for differences between backends, modes and compilers in random programs.

python tests/fuzz --programs 500 --seed 0                         # on every backend, compared with each other
python tests/fuzz --programs 50 --seed 1000 --backends torch,jax  # other programs
python tests/fuzz --seed 1234 --programs 1 --every-way --show     # the source of one; nothing is left to others

Each difference is made smaller and printed as source; a program that hangs or ends its process is printed too, and the
others go on. At the end, or when it is interrupted, it says how many programs went which way: what costs most is done
in turns. The exit status is 0 if all programs were run without a difference, 1 otherwise.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
from collections.abc import Iterator

from random_programs import WAYS, draw
from spread_programs import Found, spread

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="number of the first")
    parser.add_argument("--backends", default="torch,jax,tensorflow", help="comma-separated")
    parser.add_argument("--dtype", default="float64", help="dtype of the inputs; derivatives need float64")
    parser.add_argument("--every-way", action="store_true", help="leave nothing to the turn of another program")
    parser.add_argument(
        "--inductor", type=int, default=10, metavar="N", help="compile every Nth with Inductor; 0: none"
    )
    parser.add_argument("--workers", type=int, default=2, help="how many processes")
    parser.add_argument("--renew", type=int, default=50, metavar="N", help="programs that one process takes")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="what one program may take")
    parser.add_argument("--shrink", type=float, default=120.0, metavar="SECONDS", help="spent on making one smaller")
    parser.add_argument("--show", action="store_true", help="print each source")
    asked = parser.parse_args()
    started, found, differ = time.monotonic(), [], []
    said = started
    told_of = spread(asked, range(asked.seed, asked.seed + asked.programs))
    while (seed_and_told := _next(told_of)) is not None:
        seed, told = seed_and_told
        program = draw(seed)
        if isinstance(told, str):
            differ.append(seed)
            print(f"# program {seed} {told}\n{program.source}", flush=True)
            continue
        found.append(told)
        if told.difference:
            differ.append(seed)
            message = told.difference.message.replace("\n", "\n# ")
            print(f"# program {seed} of {len(program)} steps: {told.difference.what}\n# {message}")
            print(f"# inputs: seed={seed}, traits={sorted(program.traits)}\n{told.source}", flush=True)
        elif asked.show:
            print(f"# {seed}\n{program.source}", flush=True)
        if len(found) % 10 == 0 or time.monotonic() - said > 60:
            said = time.monotonic()
            so_far = f"{len(found)} programs in {said - started:.0f} s, {len(differ)} differ"
            print(f"# {so_far}", file=sys.stderr, flush=True)
    backends = asked.backends.split(",")
    for line in summary(found, backends):
        print(f"# {line}")
    print(f"# {time.monotonic() - started:.0f} s with {asked.workers} processes")
    told = f"{len(differ)} differ: {sorted(differ)}" if differ else "none differs"
    print(f"{len(found)} programs from {asked.seed} on {', '.join(backends)} in {asked.dtype}: {told}")
    return 1 if differ or len(found) < asked.programs else 0


def _next(told: Iterator[tuple[int, Found | str]]) -> tuple[int, Found | str] | None:
    """Return the next item; nothing if the user interrupts, so that finished work is still reported."""
    try:
        return next(told, None)
    except KeyboardInterrupt:
        return None


def summary(found: list[Found], backends: list[str]) -> list[str]:
    """Say how many programs went each way, how many steps they have and how long they took."""
    counts = collections.Counter(note for one in found for note in one.notes)
    lines = [f"{'programs that went each way':28}" + "".join(f"{backend:>12}" for backend in backends)]
    for way in (*WAYS, "Inductor"):
        lines += [f"  {way:26}" + "".join(f"{counts[f'{way} on {backend}']:12}" for backend in backends)]
    lines += [f"  {note}: {count}" for note, count in sorted(counts.items()) if "proves nothing" in note]
    if found:
        steps = sorted(one.steps for one in found)
        spent, used = (sum(getattr(one, name) for one in found) / len(found) for name in ("seconds", "processor"))
        lines += [f"steps: {steps[0]} to {steps[-1]}, median {steps[len(steps) // 2]}; more in inner functions"]
        lines += [f"a program: {spent:.1f} s, {used:.1f} s of a processor, without making it smaller"]
    return lines


if __name__ == "__main__":
    sys.exit(main())
