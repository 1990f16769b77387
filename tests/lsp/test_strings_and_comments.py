"""What stands in a string or a comment is no code; what stands in the braces of an f-string is."""

from __future__ import annotations

import pytest

from tests.lsp.asking import analysis_of, ask, in_launch, request_for
from tilelang_lsp.cursor import code_only
from tilelang_lsp.features import (
    completion,
    hover,
    navigation,
    rename,
    semantic_tokens,
    signature_help,
)
from tilelang_lsp.features.base import Feature

PLACES = {
    "# see T.co$0py(A, C)": False,
    "x = 1  # 'T.co$0py(A, C)'": False,
    "x = 'T.co$0py(A, C)'": False,
    "x = rb'T.co$0py(A, C)'": False,
    'x = """\n  T.co$0py(A, C)\n"""': False,
    'x = """\n# T.co$0py(A, C)"""': False,
    "x = f'T.co$0py(A, C)'": False,
    "x = f'{{T.co$0py(A, C)}}'": False,
    "x = f'{bx} T.co$0py(A, C)'": False,
    "x = 'it\\'s T.co$0py(A, C)'": False,
    "x = f'{T.co$0py(A, C)}'": True,
    "x = rf'{bx} {T.co$0py(A, C)}'": True,
    "x = '#' + T.co$0py(A, C)": True,
    "x = 'a' + T.co$0py(A, C)  # b": True,
}
AT_THE_NAME = (hover.FEATURE, navigation.DEFINITION, completion.FEATURE)


@pytest.mark.parametrize("line", PLACES)
@pytest.mark.parametrize("feature", AT_THE_NAME, ids=lambda f: f.method)
def test_names(feature: Feature, line: str) -> None:
    assert bool(ask(feature, in_launch(line))) is PLACES[line]


@pytest.mark.parametrize("line", PLACES)
def test_signatures(line: str) -> None:
    found = ask(signature_help.FEATURE, in_launch(line.replace("$0", "").replace("A, C", "A, $0C")))
    assert (found is not None) is PLACES[line]


@pytest.mark.parametrize("line", PLACES)
def test_renaming(line: str) -> None:
    text = in_launch(line.replace("$0", "").replace("(A, C)", "(A, b$0x)"))
    assert (ask(rename.PREPARE, text) is not None) is PLACES[line]


@pytest.mark.parametrize("line", PLACES)
def test_colours(line: str) -> None:
    source = "import tilelang.language as T\n" + line.replace("$0", "")
    found = semantic_tokens.FEATURE.answer(request_for(analysis_of(source)))
    lines = source.split("\n")
    names = [lines[t.line - 1][t.column - 1 : t.column - 1 + t.length] for t in found]
    assert ("copy" in names) is PLACES[line]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a = 'b' # c", "a =        "),
        ("'''a\nb\r\n''' + c", "    \n \r\n    + c"),
        ("'open\nb = \"open\rc", "     \nb =      \rc"),
        ("'''never\nclosed", "        \n      "),
        ("f'{a} b {c!r}' + 'd'", "f  a     c!r   +    "),
        ("f'{{a}} {b}'", "f        b  "),
        ("'a\\\nb' + c", "   \n   + c"),
        ("x # it's\ny", "x       \ny"),
        ("''' a'b''c\\''' ''' + d", "                   + d"),
    ],
)
def test_what_is_code(text: str, code: str) -> None:
    assert code_only(text) == code
