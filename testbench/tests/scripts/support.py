# SPDX-License-Identifier: Apache-2.0
"""What the tests of the scripts share: paths, a scratch directory, running a script."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPTS = REPOSITORY / "scripts"
FAKE = Path(__file__).resolve().parent / "fake_rnicsim"
sys.path.insert(0, str(SCRIPTS / "lib"))


class ScriptTest(unittest.TestCase):
    """Gives each test a directory of its own and the fake simulator."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="rnicsim-test-")
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        self.log = self.dir / "runs.log"
        self.env = {**os.environ, "RNICSIM": str(FAKE), "FAKE_LOG": str(self.log)}

    def run_script(self, name, *arguments, **env):
        """Runs scripts/NAME from a foreign current directory."""
        return subprocess.run([str(SCRIPTS / name), *map(str, arguments)], cwd=self.dir,
                              env={**self.env, **env}, capture_output=True, text=True, timeout=240)

    def runs(self):
        """Configurations of all runs of the fake so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] \
            if self.log.exists() else []

    def write(self, name, text):
        """Writes a file into the test's directory."""
        path = self.dir / name
        path.write_text(text)
        return path
