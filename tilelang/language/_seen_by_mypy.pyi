"""`T.Tensor` and its like as mypy takes them: any type, whatever stands in the brackets.

mypy reads what is in brackets as types, whatever a class says of them. What a module's
`__getattr__` gives, it does not look into.
"""

from typing import Any

def __getattr__(name: str) -> Any: ...
