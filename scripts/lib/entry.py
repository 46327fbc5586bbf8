# SPDX-License-Identifier: Apache-2.0
"""Starts one of the tools: entry.py TOOL ARGUMENT... runs rnictools.TOOL.main(arguments)."""

import importlib
import os
import sys


def main() -> int:
    """Imports the tool named on the command line and runs it."""
    tool = importlib.import_module(f"rnictools.{sys.argv[1]}")
    sys.argv[0] = sys.argv[1]
    try:
        return int(tool.main(sys.argv[2:]))
    except BrokenPipeError:
        # The reader of stdout went away (`... | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
