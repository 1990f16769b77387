"""What does the server do when it starts, when files come, change and go, and when settings do?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from tilelang_lsp import other_requests
from tilelang_lsp.addresses import path_of
from tilelang_lsp.client import Client
from tilelang_lsp.project import is_project, text_of

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
# How often project files are looked at where the editor does not watch files.
POLL_SECONDS = 1.0


def register(server: TilelangServer) -> None:
    """Everything that is no question."""
    _register_start(server)
    _register_documents(server)
    _register_notebooks(server)
    _register_settings(server)


def _register_start(server: TilelangServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.configure(params.initialization_options)
        server.editor = Client(params.capabilities)
        text = params.capabilities.text_document
        if text is not None and text.diagnostic is not None:
            server.pulls = True
            other_requests.register_pull(server)

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        if server.looker is not None:
            server.later(server.looker.warm())
        if not await _watch(server):
            server.later(_poll(server))
        await server.catalogue()
        await _pull_settings(server)
        await _hear_of_settings(server)
        if not server.pulls:
            server.closed_files.soon(0)

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(params: None) -> None:
        await server.end()


def _register_documents(server: TilelangServer) -> None:
    documents = server.documents

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        opened = params.text_document
        path = path_of(opened.uri)
        if is_project(path):
            server.project_read(path, opened.text)
        else:
            documents.open(opened.uri, path, opened.version, opened.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        text = server.workspace.get_text_document(uri).source
        path = path_of(uri)
        if is_project(path):
            server.project_read(path, text)
        else:
            documents.change(uri, params.text_document.version, text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        path = path_of(uri)
        if is_project(path):
            server.project_read(path, text_of(Path(path)))  # what is on the disk counts now
            return
        documents.close(uri)
        server.linked.edited()  # what is on the disk counts now
        server.take_away(uri)
        server.closed_files.closed(uri)


def _register_notebooks(server: TilelangServer) -> None:
    def text_of_cell(uri: str) -> str:
        return str(server.workspace.get_text_document(uri).source)

    def code_cells(uri: str) -> list[str]:
        found = server.workspace.get_notebook_document(notebook_uri=uri)
        cells = found.cells if found is not None else []
        code = [c.document for c in cells if c.kind == lsp.NotebookCellKind.Code]
        # Editors need not send the text of a cell in another language.
        known = server.workspace.get_text_document
        return [uri for uri in code if known(uri).language_id == "python"]

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        cells, path = code_cells(notebook.uri), path_of(notebook.uri)
        server.notebooks.open(notebook.uri, path, notebook.version, cells, text_of_cell)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        cells = code_cells(notebook.uri)
        server.notebooks.change(notebook.uri, notebook.version, cells, text_of_cell)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseNotebookDocumentParams) -> None:
        server.notebooks.close(params.notebook_document.uri)
        server.take_away(params.notebook_document.uri)


def _register_settings(server: TilelangServer) -> None:
    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        settings = params.settings
        said = settings.get("tilelang") if isinstance(settings, Mapping) else None
        if said is None:
            await _pull_settings(server)
        else:
            server.configure(said)
        read_again(server)
        server.closed_files.soon()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        server.linked.changed()
        server.closed_files.soon()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.linked.changed()
        server.closed_files.soon()
        if not all(change.uri.endswith(".py") for change in params.changes):
            read_again(server)


def read_again(server: TilelangServer) -> None:
    """Settings changed: all that is shown may."""
    server.documents.reanalyse()
    server.refresh_hints()


async def _pull_settings(server: TilelangServer) -> None:
    """Ask a client that answers for the section `tilelang`."""
    workspace = server.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return
    items = [lsp.ConfigurationItem(section="tilelang")]
    try:
        found = await server.workspace_configuration_async(lsp.ConfigurationParams(items))
    except Exception as error:
        log.warning("the client gives no settings: %s", error)
        return
    if found and isinstance(found[0], Mapping) and found[0]:
        before = server.client
        server.configure({**before, **found[0]})
        if server.client != before:
            read_again(server)


async def _hear_of_settings(server: TilelangServer) -> None:
    """Have the editor tell of changed settings, where it waits to be asked to."""
    workspace = server.client_capabilities.workspace
    tells = workspace.did_change_configuration if workspace else None
    if tells is None or not tells.dynamic_registration:
        return
    registration = lsp.Registration(
        "tilelang-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, {"section": "tilelang"}
    )
    try:
        await server.client_register_capability_async(lsp.RegistrationParams([registration]))
    except Exception as error:
        log.warning("the client does not tell of settings: %s", error)


async def _watch(server: TilelangServer) -> bool:
    """Have the editor watch project files; False where it does not."""
    workspace = server.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace else None
    if watched is None or not watched.dynamic_registration:
        return False
    patterns = ("**/pyproject.toml", "**/*.py")
    options: Any = {"watchers": [{"globPattern": pattern} for pattern in patterns]}
    registration = lsp.Registration(
        "tilelang-projects", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options
    )
    try:
        await server.client_register_capability_async(lsp.RegistrationParams([registration]))
    except Exception as error:
        log.warning("files are not watched: %s", error)
        return False
    server.linked.watched()
    return True


async def _poll(server: TilelangServer) -> None:
    """Look at the files that open documents, and folders, depend on now and then."""

    def stamps() -> object:
        paths = [d.path for d in server.documents.open_files.values()]
        folders = [str(Path(folder, "any.py")) for folder in server.folder_paths()]
        return server.projects.stamps(paths + folders)

    known = stamps()
    paths = set(server.documents.open_files)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        server.linked.check()
        found = stamps()
        if found != known and set(server.documents.open_files) == paths:
            read_again(server)
            server.closed_files.soon()
        known, paths = found, set(server.documents.open_files)
