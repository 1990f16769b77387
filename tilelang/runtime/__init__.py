"""Compiled kernels at run time: loading, checking arguments, launching, caching."""
