"""Layout inference of kernels, without TVM: `infer_layouts(function, target)` and its answer."""

from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.layout_map import Entry, LaunchLayouts, LayoutMap

__all__ = ["Entry", "LaunchLayouts", "LayoutMap", "infer_layouts"]
