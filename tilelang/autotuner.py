"""Tuning under the module path users import it from."""

from tilelang.runtime.autotune import TunedFunction, autotune, set_autotune_inputs

__all__ = ["TunedFunction", "autotune", "set_autotune_inputs"]
