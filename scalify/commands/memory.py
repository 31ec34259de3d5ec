"""How much memory the process took."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def peak_memory() -> int:
    """Largest resident set of this process so far, in bytes; 0 where the platform does not tell.

    Linux: ``VmHWM``, since ``getrusage`` also counts what the parent had when it started this process.
    """
    try:
        found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
        if found:
            return int(found[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
