"""How does a kernel generated for a GPU run where there is none?

Its source is compiled as C++ against headers of ours (`cpp/include`) and run by a process of its
own (`cpp/runtime`), one fiber a thread: `tilelang.compile(..., execution_backend="emulator")`.
"""
