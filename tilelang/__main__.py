"""`python -m tilelang` is the `tilelang` command."""

import sys

from tilelang.cli import main

sys.exit(main())
