"""Questions about IR that change nothing."""
