"""`python -m tilelang_lint`."""

import sys

from tilelang_lint.cli import main

sys.exit(main(sys.argv[1:]))
