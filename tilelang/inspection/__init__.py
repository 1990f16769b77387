"""What is in the machine code of a kernel, and which line of Python is it from?

`inspect_kernel` answers with frozen values (`model`); `text` and `as_json` show them, `expect`
compares them with what somebody wants to hold.
"""
