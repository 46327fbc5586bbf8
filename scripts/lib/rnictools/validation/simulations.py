# SPDX-License-Identifier: Apache-2.0
"""Runs simulations, several at a time, and remembers their figures.

What is remembered is keyed by the program's bytes, the contents of the presets and the settings: a
changed preset or program is another key, so nothing stale is ever used, and switching back costs
nothing."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional

from .. import runner, spec
from ..progress import Progress
from .binding import Run

#: Longest that one simulation may take; a healthy one takes a second at most.
TIMEOUT_S = 300.0
#: What figures are taken from; the rest of result.json is long and not needed.
_KEPT = ("config", "window_ns", "throughput_gbps", "message_rate_mops", "latency_ns", "flows",
         "bottleneck")
#: Timing is the same without payload bytes, and setting up buffers costs nothing.
_ALWAYS = {"sim.payload": "none", "output.progress": "off"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A simulation's result, or why there is none."""

    result: Optional[Mapping[str, Any]]
    error: str = ""


class Simulations:
    """A program, its presets and the results known so far."""

    def __init__(self, program: Path, configs: Path, cache: Path, jobs: int) -> None:
        if not (program.is_file() and os.access(program, os.X_OK)):
            raise runner.RunnerError(f"{program} is not a program; build it with scripts/setup")
        self._program = program
        self._configs = configs
        self._cache = cache
        self._jobs = max(1, jobs)
        self._fingerprint = runner.fingerprint(program)
        self.ran = 0  #: simulations that were not known yet

    def run(self, runs: Iterable[Run], label: str = "", quiet: bool = False
            ) -> dict[Run, Outcome]:
        """Outcomes of all runs; those that are not known are simulated."""
        presets = spec.Presets(self._configs)  # anew: presets may have changed meanwhile
        keys = {run: self._key(run, presets) for run in dict.fromkeys(runs)}
        outcomes: dict[Run, Outcome] = {}
        missing = []
        for run, key in keys.items():
            known = self._load(key)
            if known is None:
                missing.append(run)
            else:
                outcomes[run] = known
        progress = Progress(len(keys), len(outcomes), label, quiet=quiet or not missing)
        failed = 0
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            waiting = {pool.submit(self._simulate, run, presets): run for run in missing}
            try:
                for done in concurrent.futures.as_completed(waiting):
                    run = waiting[done]
                    outcomes[run] = done.result()
                    self._store(keys[run], outcomes[run])
                    failed += outcomes[run].result is None
                    progress.update(len(outcomes), failed, "")
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self.ran += len(missing)
        progress.close()
        return outcomes

    def _key(self, run: Run, presets: spec.Presets) -> str:
        digest = hashlib.sha256(self._fingerprint.encode())
        for name in run.presets:
            digest.update(f"preset {name}\n".encode() + presets.content(name))
        for key, value in run.settings:
            digest.update(f"{key}={value}\n".encode())
        return digest.hexdigest()[:32]

    def _path(self, key: str) -> Path:
        return self._cache / key[:2] / f"{key[2:]}.json"

    def _load(self, key: str) -> Optional[Outcome]:
        try:
            kept = json.loads(self._path(key).read_text(encoding="utf-8"))
            return Outcome(kept.get("result"), kept.get("error", ""))
        except (OSError, ValueError):
            return None

    def _store(self, key: str, outcome: Outcome) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(json.dumps({"result": outcome.result, "error": outcome.error}),
                           encoding="utf-8")
        os.replace(scratch, path)

    def _simulate(self, run: Run, presets: spec.Presets) -> Outcome:
        command = [str(self._program), "run"]
        for name in run.presets:
            path = presets.path(name)
            command += ["-c", str(path) if path else name]
        settings = {**_ALWAYS, **dict(run.settings)}
        with tempfile.TemporaryDirectory(prefix="rnicsim-") as scratch:
            command += [f"--{key}={value}" for key, value in settings.items()]
            command.append(f"--output.dir={scratch}")
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired:
                return Outcome(None, f"stopped after {TIMEOUT_S:g} s")
            if done.returncode != 0:
                said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
                return Outcome(None, said[-1])
            try:
                result = runner.load_result(Path(scratch) / runner.RESULT)
            except (OSError, ValueError) as error:
                return Outcome(None, f"no usable result: {error}")
        return Outcome({key: result[key] for key in _KEPT if key in result})
