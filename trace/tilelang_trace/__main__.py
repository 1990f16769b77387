"""`python -m tilelang_trace`, the same as `tilelang trace`."""

import sys

from tilelang.cli import main

sys.exit(main(["trace", *sys.argv[1:]]))
