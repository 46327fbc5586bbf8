# SPDX-License-Identifier: Apache-2.0
"""Runs points, a few at a time, so that being killed at any instant loses only unfinished ones.

A point runs in a scratch directory of its own; a finished one is renamed to its name in one step.
So `points/NAME` exists only with a complete result in it, and what else lies about is rubbish."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import types
import uuid
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from . import spec
from .progress import Progress

DONE = "done.json"
RESULT = "result.json"
SCHEMA = 1
_POLL_S = 0.01


class RunnerError(Exception):
    """The runner cannot work: no program, directory in use or not writable."""


class Interrupted(Exception):
    """A signal asked for an end; the runner has stopped its programs."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


@dataclasses.dataclass
class Failure:
    """Why a point has no result."""

    point: spec.Point
    status: int
    message: str


@dataclasses.dataclass
class Outcome:
    """What became of the points: finished ones by name, failures, how many were run just now."""

    done: dict[str, Path]
    failures: list[Failure]
    ran: int
    stale: int


def load_result(path: Path) -> dict[str, Any]:
    """Reads a result.json. Raises ValueError when it is not one of a known schema."""
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    if not isinstance(result, dict) or result.get("schema") != SCHEMA:
        raise ValueError(f"{path}: not a result of schema {SCHEMA}")
    return result


def fingerprint(program: Path) -> str:
    """Identifies a build of the program by its bytes."""
    digest = hashlib.sha256()
    with open(program, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]


def _read_tail(path: Path, limit: int = 4000) -> str:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return text[-limit:]


def _write_durably(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with open(scratch, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, path)


@dataclasses.dataclass
class _Running:
    point: spec.Point
    scratch: Path
    process: subprocess.Popen[bytes]
    started: float


class Runner:
    """Runs points of one results directory; only one runner works in a directory at a time."""

    def __init__(self, directory: Path, program: Path, jobs: int = 1,
                 presets: Optional[spec.Presets] = None, timeout_s: Optional[float] = None,
                 rerun_stale: bool = False) -> None:
        if not (program.is_file() and os.access(program, os.X_OK)):
            raise RunnerError(f"{program} is not a program; build it with scripts/setup")
        self._points = directory / "points"
        self._program = program
        self._jobs = max(1, jobs)
        self._presets = presets or spec.Presets()
        self._timeout_s = timeout_s
        self._rerun_stale = rerun_stale
        self._fingerprint = fingerprint(program)
        self._signal = 0
        try:
            self._points.mkdir(parents=True, exist_ok=True)
            self._lock = open(directory / ".lock", "w", encoding="utf-8")
        except OSError as error:
            raise RunnerError(f"cannot write to {directory}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunnerError(f"another sweep is at work in {directory}") from None
        self._clean()

    def close(self) -> None:
        """Lets another runner work in the directory."""
        self._lock.close()

    def run(self, points: list[spec.Point], progress_label: str = "", quiet: bool = False,
            on_done: Optional[Callable[[], None]] = None) -> Outcome:
        """Runs what is not finished yet. Raises Interrupted after SIGINT or SIGTERM."""
        outcome = Outcome({}, [], 0, 0)
        pending = []
        for point in {p.name: p for p in points}.values():
            state = self._state(point)
            outcome.stale += state == "stale"
            if state == "done" or (state == "stale" and not self._rerun_stale):
                outcome.done[point.name] = self._points / point.name
            else:
                pending.append(point)
        progress = Progress(len(outcome.done) + len(pending), len(outcome.done), progress_label,
                            quiet=quiet)
        with self._signals():
            self._loop(pending, outcome, progress, on_done)
        return outcome

    def _state(self, point: spec.Point) -> str:
        try:
            with open(self._points / point.name / DONE, encoding="utf-8") as file:
                done = json.load(file)
        except (OSError, ValueError):
            return "missing"
        return "done" if done.get("program") == self._fingerprint else "stale"

    def _clean(self) -> None:
        for scratch in self._points.glob(".run-*"):
            shutil.rmtree(scratch, ignore_errors=True)

    def _signals(self) -> "_SignalCatcher":
        return _SignalCatcher(self)

    def stop(self, number: int) -> None:
        """Asks the loop to end, as a signal does."""
        self._signal = number

    def _loop(self, pending: list[spec.Point], outcome: Outcome, progress: Progress,
              on_done: Optional[Callable[[], None]]) -> None:
        queue: Iterator[spec.Point] = iter(pending)
        running: list[_Running] = []
        exhausted = False
        try:
            while running or not exhausted:
                if self._signal:
                    raise Interrupted(self._signal)
                while len(running) < self._jobs and not exhausted:
                    point = next(queue, None)
                    if point is None:
                        exhausted = True
                    else:
                        running.append(self._start(point))
                over = [run for run in running if self._is_over(run)]
                for run in over:
                    running.remove(run)
                    self._finish(run, outcome)
                    if on_done:
                        on_done()
                progress.update(len(outcome.done) + len(outcome.failures), len(outcome.failures),
                                over[-1].point.name if over else "")
                if running and not over:
                    time.sleep(_POLL_S)
        finally:
            for run in running:
                self._kill(run)
            progress.close()

    def _start(self, point: spec.Point) -> _Running:
        scratch = self._points / f".run-{uuid.uuid4().hex[:12]}"
        scratch.mkdir()
        (scratch / "point.ini").write_text(point.ini(), encoding="utf-8")
        command = [str(self._program), "run"]
        for name in point.includes:
            command += ["-c", self._presets.argument(name)]
        command += ["-c", str(scratch / "point.ini"), f"--output.dir={scratch}",
                    "--output.progress=off"]
        with open(scratch / "report.txt", "wb") as out, open(scratch / "stderr.txt", "wb") as err:
            # A session of its own: the terminal's Ctrl-C reaches us alone, and we end the program.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True)
        return _Running(point, scratch, process, time.monotonic())

    def _is_over(self, run: _Running) -> bool:
        if run.process.poll() is not None:
            return True
        if self._timeout_s and time.monotonic() - run.started > self._timeout_s:
            self._terminate(run)
            return True
        return False

    def _finish(self, run: _Running, outcome: Outcome) -> None:
        status = run.process.returncode
        message = _read_tail(run.scratch / "stderr.txt")
        outcome.ran += 1
        if self._timeout_s and status < 0 and time.monotonic() - run.started > self._timeout_s:
            message = f"stopped after {self._timeout_s:g} s\n{message}".strip()
        elif status == 0:
            try:
                load_result(run.scratch / RESULT)
                self._publish(run)
                outcome.done[run.point.name] = self._points / run.point.name
                return
            except (OSError, ValueError) as error:
                message = f"no usable result: {error}"
        elif status < 0:
            message = f"killed by signal {-status}\n{message}".strip()
        outcome.failures.append(Failure(run.point, status, message or f"exit status {status}"))
        self._record_failure(run, status, message)

    def _publish(self, run: _Running) -> None:
        """Makes the result visible under its name in one step."""
        done = {"program": self._fingerprint, "wall_s": round(time.monotonic() - run.started, 3)}
        _write_durably(run.scratch / DONE, json.dumps(done) + "\n")
        final = self._points / run.point.name
        if final.exists():
            # A result of another build, or a directory without a marker: both are replaced.
            final.rename(self._points / f".run-old-{uuid.uuid4().hex[:12]}")
        run.scratch.rename(final)
        (self._points / f"{run.point.name}.failed.json").unlink(missing_ok=True)
        self._drop_old()

    def _drop_old(self) -> None:
        for old in self._points.glob(".run-old-*"):
            shutil.rmtree(old, ignore_errors=True)

    def _record_failure(self, run: _Running, status: int, message: str) -> None:
        record = {"status": status, "stderr": message, "settings": dict(run.point.settings),
                  "includes": list(run.point.includes)}
        _write_durably(self._points / f"{run.point.name}.failed.json",
                       json.dumps(record, indent=2) + "\n")
        shutil.rmtree(run.scratch, ignore_errors=True)

    def _terminate(self, run: _Running) -> None:
        try:
            os.killpg(run.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        run.process.wait()

    def _kill(self, run: _Running) -> None:
        self._terminate(run)
        shutil.rmtree(run.scratch, ignore_errors=True)


class _SignalCatcher:
    """SIGINT and SIGTERM end the runner's loop in order instead of tearing it down anywhere."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._caught)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _caught(self, number: int, _: Optional[types.FrameType]) -> None:
        self._runner.stop(number)
