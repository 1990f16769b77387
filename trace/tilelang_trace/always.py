"""What TILELANG_TRACE=FOLDER loads: every compilation of the program leaves its trace there.

It is imported by name when the first kernel is compiled (`tilelang.watching`), and registers itself
once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tilelang import options, watching
from tilelang_trace.session import Recording

_recording = Recording(Path(options.TRACE.get()))
watching.WATCHERS.append(_recording.start)
watching.INHERITED.append(_recording.start)
if options.VERBOSE.get():
    print(f"tilelang: traces go to {options.TRACE.get()}", file=sys.stderr)
