"""The command, as ``python -m sluice`` and ``sluice-gate``: it becomes ``sluice``."""

from __future__ import annotations

import os
import subprocess
import sys

from ._errors import SluiceError
from ._start import binary


def main() -> int:
    try:
        command = binary()
    except SluiceError as e:
        print(f"error: {e.detail}\nhint: {e.hint}", file=sys.stderr)
        return 69
    if os.name != "nt":
        os.execv(command, ["sluice", *sys.argv[1:]])
    return subprocess.run([command, *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
