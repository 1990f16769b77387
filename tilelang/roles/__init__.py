"""Warps of a block take roles on Hopper: one loads tiles by TMA, the others compute.

`split.py` says which launches are split; `plan.py` what is loaded, or why a launch stays whole;
`gain.py` whether it pays; `write.py` writes a launch anew, and `tiles.py` moves uses of a tile to
one of its versions.
"""
