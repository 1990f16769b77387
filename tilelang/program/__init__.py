"""The typed tile program: what a kernel means, before any TVM object exists."""

# Buffers index through the statements they emit, so the modules of this package know each other.
# Loading the top one first resolves that whichever of them is imported.
from tilelang.program import stmt as stmt
