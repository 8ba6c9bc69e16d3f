"""The processes of `multiop check`: each runs one backend, as many at a time as there are cores and memory for.

A process is given one function at a time. It is killed if that takes too long, also inside C code, and another takes
over. An executor of the standard library, or of another package, shares pipes and locks with its workers, and returns
one result at the end; here a process may be killed at any time, and what it measured until then counts.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias

import multiop

from . import _start

Event: TypeAlias = dict[str, Any]
_LONGEST = 1 << 30  # maximum size in bytes of an event
_MEMORY = 1 << 30  # bytes that a process needs: a framework, and a compiler beside it
_TICK = 0.5  # seconds between two looks at what a process does
_STOPPING = 5.0  # seconds until a killed process is left to the system


class Watcher(Protocol):
    """What is told while processes run. A process is known by a number."""

    def at(self, process: int, run: Run, what: str, task: Event | None = None) -> None:
        """Take note of what a process does: it starts, imports a file, or measures a property of a function."""

    def finished(self, run: Run, task: Event) -> None:
        """Take note of a function that was measured on a backend."""

    def ended(self, process: int) -> None:
        """Take note that a process is gone."""


class Run:
    """One backend: its functions, and what its processes found.

    Attributes:
        backend: The backend's name.
        version: The version of its framework.
        death: Why its process ended, if it should not have.
        interrupted: Whether the user ended it.
        events: What was told about files: a file that cannot be imported, functions that were left out.
        tasks: Each function at each input, in the order of the files, once the files are imported.
        results: The tasks that are done, each with its `properties`.
    """

    def __init__(self, backend: str) -> None:
        self.backend, self.version, self.death, self.interrupted = backend, "", "", False
        self.events: list[Event] = []
        self.tasks: list[Event] = []
        self.results: list[Event] = []
        self._waiting: collections.deque[Event] = collections.deque()
        self._processes = 0

    def having(self, event: str) -> dict[str, Event]:
        """Return the events of one kind, by target."""
        return {e["target"]: e for e in self.events if e["event"] == event}


def run_all(names: list[str], request: dict[str, Any], watcher: Watcher) -> dict[str, Run]:
    """Run every backend and return what was found, until an interrupt if there is one."""
    runs = {name: Run(name) for name in names}
    try:
        asyncio.run(_Pool(runs, request, watcher).work())
    except KeyboardInterrupt:
        for run in runs.values():
            if len(run.results) < len(run.tasks) or not run.tasks:
                counted = f"{len(run.results)} of {len(run.tasks)} checks were" if run.tasks else "nothing was"
                run.death, run.interrupted = f"interrupted: on {run.backend}, {counted} measured", True
    return runs


def places() -> int:
    """Return how many processes may run at a time."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        cores = os.cpu_count() or 1
    return max(1, min(cores, _free_memory() // _MEMORY))


def _free_memory() -> int:
    """Return the bytes that are free, as far as the system and its container tell."""
    free = [1 << 50]
    with contextlib.suppress(OSError, ValueError):
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free.append(int(lines["MemAvailable"].split()[0]) * 1024)
    with contextlib.suppress(OSError, ValueError):  # of the container, where there is one
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        free.append(limit - used)
    return min(free)


class _Pool:
    """Starts a process for each backend, then more for the backends on which most is left to do."""

    def __init__(self, runs: dict[str, Run], request: dict[str, Any], watcher: Watcher) -> None:
        self.runs, self.request, self.watcher = runs, request, watcher
        self.places, self.started = places(), 0
        self.to_start = collections.deque(runs.values())
        self.working: set[asyncio.Task[None]] = set()
        self.changed = asyncio.Event()

    async def work(self) -> None:
        """Run until nothing is left to do."""
        try:
            while self._fill():
                self.changed.clear()
                waker = asyncio.ensure_future(self.changed.wait())
                done, _ = await asyncio.wait({*self.working, waker}, return_when=asyncio.FIRST_COMPLETED)
                waker.cancel()
                self.working -= done
                for task in done - {waker}:
                    task.result()
        finally:
            for task in self.working:
                task.cancel()
            await asyncio.gather(*self.working, return_exceptions=True)

    def _fill(self) -> bool:
        """Use every place that is free; say whether there is something to wait for."""
        while len(self.working) < self.places:
            if self.to_start:
                run, first = self.to_start.popleft(), True
            else:  # another process of a backend pays where several functions wait for each that it has
                run, first = max(self.runs.values(), key=lambda run: len(run._waiting) / (1 + run._processes)), False
                if len(run._waiting) < 2 * (1 + run._processes):
                    break
            self.started += 1
            run._processes += 1
            self.working.add(asyncio.ensure_future(_Worker(self, run, self.started).work(first)))
        return bool(self.working)


class _Died(Exception):
    """A process cannot go on; the message says why."""


class _Unreadable(Exception):
    """A line is not an event."""


class _Worker:
    """A place where one process of a backend runs, followed by another if it has to be killed."""

    def __init__(self, pool: _Pool, run: Run, number: int) -> None:
        self.pool, self.run, self.number = pool, run, number
        self.request, self.limit = pool.request, pool.request["timeout"] or None

    async def work(self, first: bool) -> None:
        """Measure what waits; the `first` worker of a backend imports the files."""
        targets = self.request["targets"] if first else []
        try:
            while targets or self.run._waiting:
                self.pool.watcher.at(self.number, self.run, f"starting {self.run.backend}")
                targets = await self._serve(targets)
        except _Died as error:
            self.run.death = str(error)
            self.run._waiting.clear()
        finally:
            self.run._processes -= 1
            self.pool.watcher.ended(self.number)

    async def _serve(self, targets: list[Any]) -> list[Any]:
        """Start a process and use it until nothing waits or it overruns; return the targets that are left to import."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as noise:
            async with _start_process(self.run.backend, self.request, noise) as process:
                task: Event = {}
                try:
                    _send(process, self.request | {"backend": self.run.backend, "targets": targets})
                    self.run.version = (await _next(process))["version"]
                    targets, in_time = await self._import(process, targets)
                    while in_time and self.run._waiting:
                        task = self.run._waiting.popleft() | {"properties": {}}
                        in_time = await self._measure(process, task)
                        task = {}
                except EOFError:
                    during = f" while checking {task['name']}" if task else ""
                    told = f"the process of {self.run.backend} {_how_it_ended(await process.wait())}{during}\n"
                    noise.seek(0)
                    raise _Died(told + "".join(noise.readlines()[-12:])) from None
                except _Unreadable:  # a function wrote to the event stream
                    raise _Died(f"the process of {self.run.backend} sent what cannot be read") from None
        return targets

    async def _import(self, process: Process, targets: list[Any]) -> tuple[list[Any], bool]:
        """Have the files imported, and list their functions; return what is left to import, and if it was in time."""
        target, known = None, {(one["target"], one["name"], one["case"]) for one in self.run.tasks}
        try:
            while True:
                clock = _Clock(process.pid, self.limit)
                event = await clock.wait(_next(process))
                if event["event"] == "listed":
                    self.pool.changed.set()
                    return [], True
                if event["event"] == "importing":
                    target = event["target"]
                    self.pool.watcher.at(self.number, self.run, f"importing {target}")
                elif event["event"] == "task":
                    if (key := (event["target"], event["name"], event["case"])) in known:  # it was asked for twice
                        continue
                    known.add(key)
                    event["number"] = 1 + len(self.run.tasks)
                    self.run.tasks.append(event)
                    self.run._waiting.append(event)
                else:
                    self.run.events.append(event)
        except TimeoutError:
            self.run.events.append({"event": "import", "target": target, "message": f"its code {self._late(clock)}"})
            return targets[1 + [one for one, _ in targets].index(target) :], False

    async def _measure(self, process: Process, task: Event) -> bool:
        """Have a function measured; say whether it was in time."""
        which = "value"
        _send(process, {key: task[key] for key in ("target", "name", "case")})
        clock = _Clock(process.pid, self.limit)
        try:
            while (event := await clock.wait(_next(process)))["event"] != "finished":
                if event["event"] == "running":  # it may have imported the file until now, or started a compiler
                    clock = _Clock(process.pid, self.limit)
                elif event["event"] == "measuring":
                    which = event["property"]
                elif event["event"] == "measured":
                    task["properties"][event["property"]] = event["found"]
                self.pool.watcher.at(self.number, self.run, which, task)
            in_time = True
        except TimeoutError:
            message = f"{task['name']} {self._late(clock)}"
            task["properties"][which] = {"raised": "TimeoutError", "message": message, "refused": False}
            in_time = False
        self.run.results.append(task)
        self.pool.watcher.finished(self.run, task)
        return in_time

    def _late(self, clock: _Clock) -> str:
        return f"did not end within {self.limit:g} s on {self.run.backend}; --timeout sets the limit{clock.describe()}"


class _Clock:
    """Counts the time that a process has to work: where it waits for a core, a second counts by the CPU that it got."""

    def __init__(self, pid: int, limit: float | None) -> None:
        self.pid, self.limit, self.counted, self.start = pid, limit, 0.0, time.monotonic()
        self.seen, (self.cpu, _) = self.start, _work_of(pid)
        self.first_cpu = self.cpu

    async def wait(self, event: Coroutine[Any, Any, Event]) -> Event:
        """Return the next event, unless the limit is reached before it."""
        coming = asyncio.ensure_future(event)
        try:
            while not (await asyncio.wait({coming}, timeout=_TICK))[0]:
                self._count()
                if self.limit and self.counted > self.limit:
                    raise TimeoutError
            self._count()
            return coming.result()
        finally:
            coming.cancel()

    def _count(self) -> None:
        now, (cpu, is_ready) = time.monotonic(), _work_of(self.pid)
        passed = min(now - self.seen, 2 * _TICK)  # nothing looked for longer: the command was stopped, or starved
        worked = max(0.0, cpu - self.cpu)
        self.counted += min(passed, worked) if is_ready else passed
        self.seen, self.cpu = now, cpu

    def describe(self) -> str:
        """Say how much CPU the process got, where the system tells."""
        passed, worked = time.monotonic() - self.start, self.cpu - self.first_cpu
        return f"; it had {worked:.0f} s of CPU in {passed:.0f} s" if self.cpu else ""


def _work_of(pid: int) -> tuple[float, bool]:
    """Return the CPU seconds of a process and of what it started, and whether it works, or would with a core free."""
    total, is_ready, waiting = 0, False, [pid]
    with contextlib.suppress(OSError, ValueError, IndexError):  # not on Linux, or it has just ended
        while waiting:
            folder = Path(f"/proc/{waiting.pop()}")
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))  # in user and in system mode, and of children that have ended
            for thread in (folder / "task").iterdir():
                is_ready |= (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R"
                waiting += map(int, (thread / "children").read_text().split())
    return (total / os.sysconf("SC_CLK_TCK"), is_ready) if total else (0.0, False)


@contextlib.asynccontextmanager
async def _start_process(backend: str, request: dict[str, Any], noise: IO[str]) -> AsyncIterator[Process]:
    """Start a process, and kill it in the end: threads that a function left behind would keep it from exiting."""
    environment = (
        _caches()
        | os.environ
        | {
            "MULTIOP_BACKEND": backend,
            "MULTIOP_FLOATX": request["dtype"],
            "MULTIOP_KERNELS": str(int(request["kernels"])),
            "MULTIOP_X64": "1" if request["dtype"] == "float64" else "0",
            "PYTHONUNBUFFERED": "1",
        }
    )
    unsafe, environment["PYTHONPATH"] = _import_paths(request["targets"])
    command = [sys.executable, "-P", str(Path(_start.__file__)), "multiop.testing._worker", *unsafe]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=noise, env=environment, limit=_LONGEST
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOPPING):
                await process.wait()


def _caches() -> dict[str, str]:
    """Return settings with which JAX keeps what it compiled for the next run, as PyTorch does by itself."""
    folder = os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    if not os.path.isabs(folder):
        return {}
    return {
        "JAX_COMPILATION_CACHE_DIR": os.path.join(folder, "multiop", "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _send(process: Process, message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")


async def _next(process: Process) -> Event:
    """Return the next event; raise `EOFError` if the process ended."""
    assert process.stdout is not None
    try:
        line = await process.stdout.readline()
        event: Event = json.loads(line) if line else {"event": "ended"}
        kind = event["event"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _Unreadable from None
    if kind == "ended":
        raise EOFError
    if kind == "failed":
        raise _Died(event["message"])
    return event


def _how_it_ended(status: int) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _import_paths(targets: list[tuple[str, str | None]]) -> tuple[list[str], str]:
    """Return a worker's import folders that come after the standard library, and PYTHONPATH, which comes before.

    If the current folder, or that of a file, came before the standard library, a `typing.py` in it would shadow it.
    """
    here = {Path.cwd(), *(Path(target).resolve().parent for target, _ in targets if target.endswith(".py"))}
    given = os.environ.get("PYTHONPATH", "")
    entries = [os.path.abspath(entry) for entry in given.split(os.pathsep)] if given else []
    unsafe = [entry for entry in dict.fromkeys(entries) if Path(entry).resolve() in here]
    own = str(Path(multiop.__file__).resolve().parent.parent)
    return [own, *unsafe], os.pathsep.join(entry for entry in entries if entry not in unsafe)
