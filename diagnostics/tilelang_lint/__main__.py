"""`python -m tilelang_lint`, the same as `tilelang lint`."""

import sys

from tilelang.cli import main

sys.exit(main(["lint", *sys.argv[1:]]))
