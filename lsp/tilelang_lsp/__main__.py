"""`python -m tilelang_lsp`: the language server on standard input and output."""

import sys

from tilelang_lsp.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
