"""What is answered to a message that is not as it has to be? The error that LSP has for it.

Every request gets one answer, whatever it says; a notification that cannot be understood, or comes
at the wrong time, is dropped. Neither is a message box in the editor. pygls does the rest: it
calls the handler, and keeps the texts.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any
from urllib.parse import unquote

from cattrs import transform_error
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    lsp_method,
)

from tilelang_lsp.texts import Change, edited

log = logging.getLogger(__name__)


class Plain(list[dict[str, Any]]):
    """An answer in the form that JSON has, sent as it is."""


class Protocol(LanguageServerProtocol):
    """The rules of the protocol. `status` is the exit status, once the editor said exit."""

    status: int | None = None
    _ends = False

    def receive(self, body: bytes) -> None:
        """Take one message; never raises for what it says."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, lsp.ErrorCodes.ParseError, f"this is no JSON: {error}")
            return
        number = data.get("id") if isinstance(data, dict) else None
        number = number if isinstance(number, int | str) else None
        if not isinstance(data, dict) or data.get("jsonrpc") != self.VERSION:
            self._refuse(number, lsp.ErrorCodes.InvalidRequest, "this is no message of JSON-RPC")
        elif "method" not in data and number is not None and ("result" in data or "error" in data):
            self._take_answer(number, data)
        elif not isinstance(data.get("method"), str) or ("id" in data and number is None):
            self._refuse(number, lsp.ErrorCodes.InvalidRequest, "this is neither call nor answer")
        else:
            self._take_call(number, data["method"], data)

    def _take_call(self, number: int | str | None, method: str, data: dict[str, Any]) -> None:
        refusal = self._refusal(method)
        if method == lsp.EXIT:
            self.status = 0 if self._ends else 1
        elif refusal is None:
            fallback = JsonRPCNotification if number is None else JsonRPCRequestMessage
            kind = self.get_message_type(method) or fallback
            try:
                message = self._converter.structure({"params": None, **data}, kind)
            except Exception as error:
                what = f"{method}: {_reason(error)}"
                self._drop(number, lsp.ErrorCodes.InvalidParams, what)
                return
            self._ends = self._ends or method == lsp.SHUTDOWN
            self.handle_message(message)
        else:
            self._drop(number, *refusal)

    def _refusal(self, method: str) -> tuple[lsp.ErrorCodes, str] | None:
        """Why a call cannot be answered now, or ever."""
        if self._ends:
            return lsp.ErrorCodes.InvalidRequest, f"{method}: the server was shut down"
        if (self._workspace is None) != (method == lsp.INITIALIZE):
            if method == lsp.INITIALIZE:
                return lsp.ErrorCodes.InvalidRequest, "the server is initialized already"
            return lsp.ErrorCodes.ServerNotInitialized, f"{method}: initialize comes first"
        known = method in self.fm.builtin_features or method in self.fm.features
        if known or method == lsp.CANCEL_REQUEST:
            return None
        return lsp.ErrorCodes.MethodNotFound, f"{method}: there is no such method"

    def _drop(self, number: int | str | None, code: lsp.ErrorCodes, what: str) -> None:
        """Refuse a request; a notification has no answer."""
        if number is not None:
            self._refuse(number, code, what)
        elif code is lsp.ErrorCodes.InvalidParams:
            log.warning("%s", what)
        else:
            log.debug("%s", what)

    def _refuse(self, number: int | str | None, code: lsp.ErrorCodes, what: str) -> None:
        # Written out, since the number has to be there even where it is null.
        error = {"code": code.value, "message": what}
        self._send_data({"jsonrpc": self.VERSION, "id": number, "error": error})

    def _take_answer(self, number: int | str, data: dict[str, Any]) -> None:
        """What the editor says to a request of ours; one nobody waits for is dropped."""
        kind = self._result_types.pop(number, None) or JsonRPCResponseMessage
        error, result = None, None
        try:
            if "error" in data:
                error = self._converter.structure(data, lsp.ResponseErrorMessage).error
            else:
                result = self._converter.structure(data, kind).result
        except Exception as wrong:
            error = lsp.ResponseError(lsp.ErrorCodes.InvalidParams.value, _reason(wrong))
        try:
            self._handle_response(number, result, error)
        except InvalidStateError:
            log.debug("the answer to %s comes too late", number)

    def _run_generator(
        self, future: Future[Any] | None, *, gen: Generator[Any, Any, Any],
        result_future: Future[Any],
    ) -> None:  # fmt: skip
        """Go on with a built-in handler; one whose own handler was cancelled ends, too."""
        if future is not None and future.cancelled():
            gen.close()
            result_future.cancel()
        else:
            super()._run_generator(future, gen=gen, result_future=result_future)

    def _send_response(
        self, msg_id: int | str, result: Any = None, error: lsp.ResponseError | None = None
    ) -> None:
        """Answer a request."""
        if isinstance(result, Plain) and error is None:
            self._result_types.pop(msg_id, None)
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result})
        else:
            super()._send_response(msg_id, result, error)

    def _send_handler_result(self, future: Future[Any], *, msg_id: int | str) -> None:
        """Answer a request; one that was refused is no failure of ours."""
        error = None if future.cancelled() else future.exception()
        if isinstance(error, JsonRpcException):
            self._request_futures.pop(msg_id, None)
            self._send_response(msg_id, error=error.to_response_error())
        else:
            super()._send_handler_result(future, msg_id=msg_id)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> Iterator[Any]:
        """A text was opened; pygls takes no address apart that is none."""
        try:
            self.workspace.put_text_document(params.text_document)
        except ValueError as error:
            log.warning("%s cannot be opened: %s", params.text_document.uri, error)
            return
        yield from self._tell(lsp.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: lsp.DidChangeTextDocumentParams
    ) -> Iterator[Any]:
        """A text was edited; one that is not open cannot be."""
        if self._edit(params.text_document, params.content_changes):
            yield from self._tell(lsp.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: lsp.DidChangeNotebookDocumentParams
    ) -> Iterator[Any]:
        """Cells were edited, came, went or moved."""
        uri = params.notebook_document.uri
        if self.workspace.get_notebook_document(notebook_uri=uri) is None:
            log.warning("%s is edited and not open", uri)
            return
        cells = params.change.cells
        texts = [] if cells is None else list(cells.text_content or ())
        if cells is not None:
            cells.text_content = None
        self.workspace.update_notebook_document(params)
        for text in texts:
            self._edit(text.document, text.changes)
        yield from self._tell(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE, params)

    def _tell(self, method: str, params: Any) -> Iterator[Any]:
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, (params,), None

    def _edit(self, place: lsp.VersionedTextDocumentIdentifier, changes: Sequence[Change]) -> bool:
        """Edit a text that is open; whether there is one."""
        if unquote(place.uri) not in self.workspace.text_documents:
            log.warning("%s is edited and not open", place.uri)
            return False
        found = self.workspace.get_text_document(place.uri)
        text = edited(found.source, changes, self.workspace.position_encoding or "utf-16")
        item = lsp.TextDocumentItem(found.uri, found.language_id or "", place.version, text)
        self.workspace.put_text_document(item)
        return True


def _reason(error: Exception) -> str:
    """What is wrong with the fields of a message."""
    try:
        return "; ".join(dict.fromkeys(transform_error(error)))
    except Exception:
        return str(error)
