"""Bad input: each a clear diagnostic, and nothing lost.

Here is what no other folder is about; the rest stands beside the code it tests:

| bad input | test |
|---|---|
| a syntax error in the file; no such kernel | `cli/test_files.py`, `language/test_diagnostics.py` |
| a kernel of a notebook cell, of `exec`, of the prompt | `runtime/test_jit.py` |
| a file one may not read, a cache one may not write | `test_permissions.py` here |
| a Latin-1 file, a file of 5,000 lines | `cli/test_files.py` |
| recursion in macros and helpers, a huge unroll | `test_extremes.py` here |
| a full disk, a read-only cache, a damaged entry | `runtime/test_cache.py` |
| two processes that compile one kernel | `runtime/test_cache.py`, `runtime/test_store.py` |
| a tensor on the wrong device, a view, an unaligned pointer | `runtime/test_arguments.py`,
  `runtime_cuda/test_device_arguments.py`, `cpu/test_memory.py` |
"""
