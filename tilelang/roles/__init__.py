"""Warps of a block take roles on Hopper: one loads tiles by TMA, the others compute.

`split.py` says which launches are split, and writes them anew; `plan.py` says what is loaded, or
why a launch stays whole; `tiles.py` moves uses of a tile to one of its versions.
"""
