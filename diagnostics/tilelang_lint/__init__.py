"""Checks of kernel files without running them: `tilelang lint`."""
