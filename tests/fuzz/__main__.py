"""Look for differences between backends, modes and compilers, and from NumPy, in random programs.

python tests/fuzz --programs 500 --seed 0                         # of each generator, on every backend
python tests/fuzz --generators seams --seed 1000 --backends jax   # of one generator, on one backend
python tests/fuzz --generators modes --seed 1234 --programs 1 --every-way --show     # one, with its source

The generators: `modes` draws functions, run in every mode and compared between the backends; `seams` draws training
loops of transforms that nest over closures, with random numbers, threads, buffers that are filled again and memory that
is counted; `sized` draws ops at the sizes, ranks, constants and dtypes at which compilers and kernels change. These
two are compared with NumPy, and each program is a script that shows its difference by itself. `small` draws two to five
ops of few numbers, in every dtype and of every size, compared with float64 in value and two orders of derivatives.

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

from random_programs import WAYS
from scripts import SCRIPTED
from spread_programs import GENERATORS, Found, examined, spread

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generators", default=",".join(GENERATORS), help="comma-separated")
    parser.add_argument("--programs", type=int, default=500, help="how many of each generator")
    parser.add_argument("--seed", type=int, default=0, help="number of the first")
    parser.add_argument("--backends", default="torch,jax,tensorflow", help="comma-separated")
    parser.add_argument("--dtype", default="float64", help="of the inputs in `modes`; derivatives need float64")
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
    generators = asked.generators.split(",")
    if unknown := set(generators) - set(GENERATORS):
        parser.error(f"--generators: {', '.join(sorted(unknown))} is none of {', '.join(GENERATORS)}")
    return max([search(argparse.Namespace(**vars(asked), generator=generator)) for generator in generators])


def search(asked: argparse.Namespace) -> int:
    """Run the programs of one generator; return the exit status."""
    started, found, differ = time.monotonic(), [], []
    said, backends = started, asked.backends.split(",")
    told_of = spread(asked, range(asked.seed, asked.seed + asked.programs))
    while (seed_and_told := _next(told_of)) is not None:
        seed, told = seed_and_told
        program = GENERATORS[asked.generator].draw(seed)
        name = f"# {asked.generator} {seed}"
        if isinstance(told, str):
            print(f"{name} {told}", flush=True)
            differ.append(seed)
            if asked.generator == "modes" or not (told := examined(program, backends, asked, apart=True)).difference:
                print(program.script(backends[0]), flush=True)
                continue
        else:
            found.append(told)
        if told.difference:
            differ.append(seed)
            message = told.difference.message.replace("\n", "\n# ")
            print(f"{name} of {told.steps} steps on {' and '.join(told.difference.backends)}: {told.difference.what}")
            print(f"# {message}\n{told.source}", flush=True)
        elif asked.show:
            print(f"{name}\n{told.source}", flush=True)
        if len(found) % 10 == 0 or time.monotonic() - said > 60:
            said = time.monotonic()
            so_far = f"{len(found)} programs in {said - started:.0f} s, {len(set(differ))} differ"
            print(f"# {so_far}", file=sys.stderr, flush=True)
    for line in summary(found, backends):
        print(f"# {line}")
    print(f"# {time.monotonic() - started:.0f} s with {asked.workers} processes")
    result = f"{len(set(differ))} differ: {sorted(set(differ))}" if differ else "none differs"
    print(f"{len(found)} programs of {asked.generator} from {asked.seed} on {', '.join(backends)}: {result}")
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
    for way in (*WAYS, *SCRIPTED, "Inductor"):
        if any(counts[f"{way} on {backend}"] for backend in backends):
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
