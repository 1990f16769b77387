"""One self-contained page of a trace: `page.page_of` makes it."""
