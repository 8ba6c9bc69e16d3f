"""Programs of the search, spread over processes that may hang or die."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import logging
import multiprocessing
import multiprocessing.connection
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import random_programs
import seam_programs
import sized_programs
import small_programs
from random_programs import Difference, minimised, ways_of

GENERATORS = {"modes": random_programs, "seams": seam_programs, "sized": sized_programs, "small": small_programs}


@dataclasses.dataclass
class Found:
    """What came of one program.

    Attributes:
        steps: How many steps it has.
        seconds: How long it took.
        processor: Seconds of a processor.
        notes: What was done.
        difference: What was found.
        source: The program, made smaller if something was found.
    """

    steps: int
    seconds: float
    processor: float
    notes: list[str]
    difference: Difference | None
    source: str


def work(connection: Any, asked: argparse.Namespace) -> None:
    """Take seeds from a connection, and send back what was found."""
    warnings.simplefilter("ignore")
    logging.getLogger("tensorflow").setLevel(logging.CRITICAL)  # it logs what it then does otherwise
    backends = asked.backends.split(",")
    if "torch" in backends:
        import torch  # before TensorFlow

        torch.set_num_threads(1)
    connection.send(None)
    while True:
        try:
            seed = connection.recv()
        except EOFError:
            return
        connection.send(examined(GENERATORS[asked.generator].draw(seed), backends, asked))


def examined(program: Any, backends: list[str], asked: argparse.Namespace, **options: Any) -> Found:
    """Look for a difference, and make the program smaller if there is one."""
    started, used, notes = time.monotonic(), time.process_time(), list[str]()
    inductor = "torch" in backends and asked.inductor > 0 and program.seed % asked.inductor == 0
    if inductor:
        notes.append("Inductor on torch")
    options["inductor"] = inductor
    turns: dict[str, Any] = {}
    if asked.generator == "modes":
        options["dtype"] = asked.dtype
        turns["ways"] = None if asked.every_way else ways_of(program.seed, backends)
    difference = program.look(backends, notes=notes, **turns, **options)
    spent, used = time.monotonic() - started, time.process_time() - used
    small = program
    if difference:
        small = minimised(program, difference, seconds=asked.shrink, **options)
        difference = small.look(difference.backends, only=difference.what, **options) or difference
    source = small.script(difference.backends[0] if difference else backends[0])
    return Found(len(program), spent, used, notes, difference, source)


class Worker:
    """A process that takes programs one after the other, and ends after some: compilers keep what they compiled."""

    def __init__(self, asked: argparse.Namespace, waiting: collections.deque[int], target: Callable[..., None]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.asked, self.waiting, self.left = asked, waiting, asked.renew
        self.process = context.Process(target=target, args=(theirs, asked), daemon=True)
        self.process.start()
        theirs.close()
        self.seed: int | None = None
        self.since, self.is_over = time.monotonic(), False

    def read(self) -> tuple[int, Found | str] | None:
        """Take what the process says, and give it the next program; return what came of the last one."""
        try:
            told = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            if self.left == self.asked.renew:
                raise SystemExit(f"a process ended with {self.process.exitcode} before its first program") from None
            return self.end(f"ended its process with {self.process.exitcode}")
        last = self.seed
        if self.waiting and self.left:
            self.seed, self.left, self.since = self.waiting.popleft(), self.left - 1, time.monotonic()
            self.connection.send(self.seed)
        else:
            self.end("")
        return None if last is None else (last, told)

    def end(self, why: str) -> tuple[int, str] | None:
        """End the process; return the program that it had, and why it came to nothing."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.is_over = True
        return None if self.seed is None else (self.seed, why)

    @property
    def is_late(self) -> bool:
        """Whether the program takes longer than any may."""
        return self.seed is not None and time.monotonic() - self.since > self.asked.timeout


def spread(
    asked: argparse.Namespace, seeds: Iterable[int], target: Callable[..., None] = work
) -> Iterator[tuple[int, Found | str]]:
    """Yield what came of each program, or why nothing did, as soon as it is known."""
    waiting = collections.deque(seeds)
    workers = [Worker(asked, waiting, target) for _ in range(min(asked.workers, len(waiting)))]
    while workers:
        ready = multiprocessing.connection.wait([worker.connection for worker in workers], timeout=0.5)
        for worker in list(workers):
            told: tuple[int, Found | str] | None = None
            if worker.connection in ready:
                told = worker.read()
            elif worker.is_late:
                told = worker.end(f"took longer than {asked.timeout:.0f} s")
            if told:
                yield told
            if worker.is_over:
                workers.remove(worker)
                if waiting:
                    workers.append(Worker(asked, waiting, target))
