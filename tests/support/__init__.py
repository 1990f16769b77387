"""Helpers of the test suite: the only callers of internal APIs that many tests share."""
