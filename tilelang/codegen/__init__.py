"""Lowered programs in, target code out: LLVM for the CPU, C-like source for devices."""
