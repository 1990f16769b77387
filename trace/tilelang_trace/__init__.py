"""What every pass did to a kernel: `tilelang trace`."""
