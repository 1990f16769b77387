"""A whole session over stdio with pytest-lsp's client, as VS Code and as Neovim.

Its client reads each answer as the type that the protocol says, warns of what the editor did not
announce, and fails when the server dies. What the answers say is tested in the other files.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp

pytest_lsp = pytest.importorskip("pytest_lsp", reason="pytest-lsp is not installed")

from tests.lsp.rpc_client import PATHS, TIMEOUT  # noqa: E402

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]

TEXT = """\
import tilelang.language as T


@T.macro
def shifted(tile, size):
    for i in T.Parallel(size):
        tile[i] = tile[i] + 1.0


@T.prim_func
def add(A: T.Tensor((4096,), "float32"), B: T.Tensor((4096,), "float32")):
    with T.Kernel(4096 // 256, threads=128) as bx:
        tile = T.alloc_shared((256,), "float32")
        T.copy(A[bx * 256], tile)
        shifted(tile, 256)
        T.copy(tile, B[bx * 256])  # TL110 if `tile` is misspelt
"""
BROKEN = TEXT.replace("T.copy(tile, B", "T.copy(tille, B")
EDITORS = ["visual-studio-code", "neovim@v0.11"]
REFRESHES = [
    lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.WORKSPACE_INLAY_HINT_REFRESH,
    lsp.WORKSPACE_SEMANTIC_TOKENS_REFRESH,
]  # fmt: skip


def made_client() -> Any:
    """pytest-lsp's client, which also takes what these editors announce that they take."""
    client = pytest_lsp.make_test_lsp_client()
    client.asked = []
    for method in REFRESHES:
        client.feature(method)(lambda *_, method=method: client.asked.append(method))
    client.feature(lsp.CLIENT_REGISTER_CAPABILITY)(lambda *_: None)
    return client


CONFIG = pytest_lsp.ClientServerConfig(
    client_factory=made_client,
    server_command=[sys.executable, "-m", "tilelang", "lsp"],
    server_env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS))},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("workspace")
    (made / "kernel.py").write_text(TEXT, encoding="utf-8")
    (made / "other.py").write_text(
        "from kernel import shifted\n" + TEXT.replace("def shifted(", "def unused("),
        encoding="utf-8",
    )
    (made / "pyproject.toml").write_text('[tool.tilelang]\ntarget = "cuda:sm_90a"\n')
    return made


@pytest_lsp.fixture(config=CONFIG, scope="module", params=EDITORS)
async def client(client: pytest_lsp.LanguageClient, request: Any, folder: Path) -> Any:
    capabilities = pytest_lsp.client_capabilities(request.param)
    workspace = lsp.WorkspaceFolder(uri=folder.as_uri(), name="workspace")
    client.offered = (
        await client.initialize_session(
            lsp.InitializeParams(
                capabilities=capabilities, root_uri=folder.as_uri(), workspace_folders=[workspace],
                process_id=os.getpid(),
            )
        )
    ).capabilities  # fmt: skip
    client.workspace = folder
    open_text(client, "kernel.py", TEXT)
    await diagnostics(client, "kernel.py")
    yield
    await client.shutdown_session()


def uri(client: Any, name: str) -> str:
    return (client.workspace / name).as_uri()


def document(client: Any, name: str = "kernel.py") -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(uri=uri(client, name))


def open_text(client: Any, name: str, text: str) -> None:
    item = lsp.TextDocumentItem(uri(client, name), "python", 1, text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))


def at(word: str, occurrence: int = 1, inside: int = 1) -> lsp.Position:
    """A position in a word of `TEXT`, by how often it has come before."""
    offset = -1
    for _ in range(occurrence):
        offset = TEXT.index(word, offset + 1)
    before = TEXT[: offset + inside].split("\n")
    return lsp.Position(len(before) - 1, len(before[-1]))


def everything() -> lsp.Range:
    return lsp.Range(lsp.Position(0, 0), lsp.Position(TEXT.count("\n"), 0))


def text_of(range_: lsp.Range) -> str:
    assert range_.start.line == range_.end.line
    return TEXT.split("\n")[range_.start.line][range_.start.character : range_.end.character]


async def diagnostics(client: Any, name: str) -> list[lsp.Diagnostic]:
    """Pulled where the server lets the editor ask, else waited for."""
    if client.offered.diagnostic_provider is not None:
        report = await client.text_document_diagnostic_async(
            lsp.DocumentDiagnosticParams(text_document=document(client, name))
        )
        assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
        return list(report.items)
    while uri(client, name) not in client.diagnostics:
        await asyncio.wait_for(
            client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS), TIMEOUT
        )
    return list(client.diagnostics[uri(client, name)])


async def test_diagnostics(client: Any) -> None:
    assert await diagnostics(client, "kernel.py") == []
    open_text(client, "broken.py", BROKEN)
    (found,) = await diagnostics(client, "broken.py")
    assert (found.code, found.source) == ("TL110", "tilelang")
    assert found.severity == lsp.DiagnosticSeverity.Error
    if found.code_description is not None:  # Neovim does not announce that it follows them
        assert "TL110" in found.code_description.href
    actions = await client.text_document_code_action_async(
        lsp.CodeActionParams(
            document(client, "broken.py"), found.range, lsp.CodeActionContext([found])
        )
    )
    fixes = [a for a in actions if isinstance(a, lsp.CodeAction)]
    assert any(a.kind == lsp.CodeActionKind.QuickFix and "tile" in a.title for a in fixes)
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(document(client, "broken.py")))


async def test_workspace_diagnostics(client: Any) -> None:
    provider = client.offered.diagnostic_provider
    if provider is None or not provider.workspace_diagnostics:
        pytest.skip("pushed to this editor")
    report = await client.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams([]))
    assert isinstance(report, lsp.WorkspaceDiagnosticReport)


async def test_inlay_hints(client: Any) -> None:
    hints = await client.text_document_inlay_hint_async(
        lsp.InlayHintParams(document(client), everything())
    )
    labels = [h.label if isinstance(h.label, str) else "".join(p.value for p in h.label)
              for h in hints]  # fmt: skip
    assert any("float32 shared" in label for label in labels)
    assert any("16 blocks" in label for label in labels)
    resolved = await client.inlay_hint_resolve_async(hints[0])
    assert isinstance(resolved, lsp.InlayHint) and resolved.position == hints[0].position


async def test_hover(client: Any) -> None:
    hover = await client.text_document_hover_async(
        lsp.HoverParams(document(client), at("alloc_shared"))
    )
    assert (
        isinstance(hover.contents, lsp.MarkupContent) and "T.alloc_shared" in hover.contents.value
    )


async def test_completion(client: Any) -> None:
    found = await client.text_document_completion_async(
        lsp.CompletionParams(document(client), at("T.copy", inside=2))
    )
    items = found.items if isinstance(found, lsp.CompletionList) else found
    (copy,) = (item for item in items if item.label == "copy")
    resolved = await client.completion_item_resolve_async(copy)
    assert isinstance(resolved, lsp.CompletionItem) and resolved.documentation


async def test_signature_help(client: Any) -> None:
    help_ = await client.text_document_signature_help_async(
        lsp.SignatureHelpParams(document(client), at("T.copy(", inside=7))
    )
    assert help_.signatures[0].label.startswith("T.copy(src, dst")


async def test_definition_references_and_highlights(client: Any) -> None:
    use = at("tile)", inside=1)
    found = await client.text_document_definition_async(lsp.DefinitionParams(document(client), use))
    places = [found] if isinstance(found, lsp.Location | lsp.LocationLink) else list(found)
    assert len(places) == 1
    references = await client.text_document_references_async(
        lsp.ReferenceParams(lsp.ReferenceContext(True), document(client), use)
    )
    assert [text_of(r.range) for r in references] == ["tile"] * 4
    highlights = await client.text_document_document_highlight_async(
        lsp.DocumentHighlightParams(document(client), use)
    )
    assert [text_of(h.range) for h in highlights] == ["tile"] * 4


async def test_rename(client: Any) -> None:
    use = at("tile)", inside=1)
    prepared = await client.text_document_prepare_rename_async(
        lsp.PrepareRenameParams(document(client), use)
    )
    assert prepared is not None
    edit = await client.text_document_rename_async(
        lsp.RenameParams(document(client), use, "staged")
    )
    assert isinstance(edit, lsp.WorkspaceEdit)
    changed = edit.changes[uri(client, "kernel.py")] if edit.changes else (
        edit.document_changes[0].edits
    )  # fmt: skip
    assert {e.new_text for e in changed} == {"staged"} and len(changed) == 4


async def test_symbols(client: Any) -> None:
    outline = await client.text_document_document_symbol_async(
        lsp.DocumentSymbolParams(document(client))
    )
    assert [s.name for s in outline] == ["shifted", "add"]
    found = await client.workspace_symbol_async(lsp.WorkspaceSymbolParams("shifted"))
    assert "shifted" in {s.name for s in found}


async def test_semantic_tokens(client: Any) -> None:
    legend = client.offered.semantic_tokens_provider.legend
    tokens = await client.text_document_semantic_tokens_full_async(
        lsp.SemanticTokensParams(document(client))
    )
    assert tokens.data and len(tokens.data) % 5 == 0
    assert max(tokens.data[3::5]) < len(legend.token_types)


async def test_folding_and_selection(client: Any) -> None:
    folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document(client)))
    assert any(fold.end_line > fold.start_line for fold in folds)
    (selection,) = await client.text_document_selection_range_async(
        lsp.SelectionRangeParams(document(client), [at("bx * 256")])
    )
    depth, outer = 0, selection
    while outer.parent is not None:
        depth, outer = depth + 1, outer.parent
    assert depth >= 3 and outer.range.start.line == 0


async def test_document_links(client: Any) -> None:
    (link,) = await client.text_document_document_link_async(
        lsp.DocumentLinkParams(document(client))
    )
    assert text_of(link.range) == "TL110" and link.target.endswith("TL110.md")


async def test_code_lenses_and_their_commands(client: Any) -> None:
    known = set(client.offered.execute_command_provider.commands)
    for _ in range(100):  # budgets come when they are known
        lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document(client)))
        if any("shared" in lens.command.title for lens in lenses or () if lens.command):
            break
        await asyncio.sleep(0.1)
    titles = [lens.command.title for lens in lenses]
    assert any("shared" in title for title in titles)
    assert any("compile" in title for title in titles)
    assert {lens.command.command for lens in lenses if lens.command.command} <= known


async def test_call_hierarchy(client: Any) -> None:
    (item,) = await client.text_document_prepare_call_hierarchy_async(
        lsp.CallHierarchyPrepareParams(document(client), at("shifted"))
    )
    callers = await client.call_hierarchy_incoming_calls_async(
        lsp.CallHierarchyIncomingCallsParams(item)
    )
    assert "add" in {call.from_.name for call in callers}
    (caller,) = (c.from_ for c in callers if c.from_.uri == uri(client, "kernel.py"))
    called = await client.call_hierarchy_outgoing_calls_async(
        lsp.CallHierarchyOutgoingCallsParams(caller)
    )
    assert "shifted" in {call.to.name for call in called}


async def test_edits(client: Any) -> None:
    for version, text, codes in ((2, BROKEN, ["TL110"]), (3, TEXT, [])):
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        changed = lsp.VersionedTextDocumentIdentifier(version, uri(client, "kernel.py"))
        client.diagnostics.pop(changed.uri, None)
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(changed, [change]))
        assert [found.code for found in await diagnostics(client, "kernel.py")] == codes


async def test_a_change_of_settings(client: Any) -> None:
    """Sent along, and asked for by the server where the editor can be asked."""
    for enable in (False, True):
        settings = {"inlayHints": {"enable": enable}}
        client.set_configuration({"tilelang": settings})
        client.workspace_did_change_configuration(
            lsp.DidChangeConfigurationParams({"tilelang": settings})
        )
        for _ in range(100):
            hints = await client.text_document_inlay_hint_async(
                lsp.InlayHintParams(document(client), everything())
            )
            if bool(hints) is enable:
                break
            await asyncio.sleep(0.05)
        assert bool(hints) is enable


async def test_a_notebook(client: Any) -> None:
    cell = lsp.NotebookCell(kind=lsp.NotebookCellKind.Code, document="vscode-notebook-cell:n#1")
    client.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            lsp.NotebookDocument(uri(client, "n.ipynb"), "jupyter-notebook", 1, [cell]),
            [lsp.TextDocumentItem(cell.document, "python", 1, TEXT)],
        )
    )
    hover = await client.text_document_hover_async(
        lsp.HoverParams(lsp.TextDocumentIdentifier(cell.document), at("alloc_shared"))
    )
    assert hover is not None


async def test_nothing_went_wrong_on_the_way(client: Any) -> None:
    """Last of the file: no message was shown, none of the log tells of a failure."""
    assert [m.message for m in client.messages] == []
    errors = [m for m in client.log_messages if m.type == lsp.MessageType.Error]
    assert [m.message for m in errors] == []
    assert client.error is None


async def test_the_command_ends_as_the_protocol_says(folder: Path) -> None:
    messages = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None,
                                                     "rootUri": folder.as_uri()}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]  # fmt: skip
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)
    process = await asyncio.create_subprocess_exec(
        *CONFIG.server_command, env=CONFIG.server_env, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complaints = await asyncio.wait_for(process.communicate(sent), TIMEOUT)
    assert process.returncode == 0
    assert b'"capabilities"' in said
    assert b"TL900" not in complaints, complaints.decode()
