"""How does object code run in this process without a linker?

A kernel's object file is small and plain: code, constants, a few references to the C library.
This loader places its sections in memory, resolves its relocations and makes it executable. It
knows ELF for x86-64; for anything else it says so, and the caller links a shared library.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_EM_X86_64: Final = 62
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS = 2, 4, 8
_SHF_WRITE, _SHF_ALLOC = 1, 2
_SHN_UNDEF, _SHN_ABS = 0, 0xFFF1
_STB_WEAK: Final = 2

_ABSOLUTE: Final = (1,)  # R_X86_64_64
_RELATIVE: Final = {2: 4, 4: 4, 24: 8}  # PC32, PLT32, PC64 -> bytes
_THROUGH_TABLE: Final = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
_SLOT: Final = 16  # one stub (jmp *address) or table entry per outside symbol
_PAGE: Final = mmap.PAGESIZE


class CannotLoad(Exception):
    """The object code is not of a kind this loader knows."""


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int
    is_weak: bool


class LoadedObject:
    """Object code made executable; `address(name)` finds its functions. Freed with the object."""

    def __init__(self, code: bytes, resolve: Callable[[str], int | None]) -> None:
        image = _Image(code, resolve)
        self._memory = image.place()
        self._symbols = image.defined

    def address(self, name: str) -> int:
        """Where function `name` starts; raises KeyError when there is none."""
        return self._symbols[name]


class _Image:
    """One object file on its way into memory."""

    def __init__(self, code: bytes, resolve: Callable[[str], int | None]) -> None:
        self.code = code
        self.resolve = resolve
        self.sections = self._read_sections()
        self.symbols = self._read_symbols()
        self.defined: dict[str, int] = {}
        self.bases: dict[int, int] = {}
        self.outside: dict[str, int] = {}

    def _read_sections(self) -> list[_Section]:
        code = self.code
        if code[:6] != b"\x7fELF\x02\x01" or sys.byteorder != "little":
            raise CannotLoad("not a 64-bit little-endian ELF file")
        kind, machine = struct.unpack_from("<HH", code, 16)
        if kind != 1 or machine != _EM_X86_64:
            raise CannotLoad("not a relocatable file for x86-64")
        (table,) = struct.unpack_from("<Q", code, 40)
        size, count = struct.unpack_from("<HH", code, 58)
        found = []
        for i in range(count):
            fields = struct.unpack_from("<IIQQQQIIQQ", code, table + i * size)
            _, sh_type, flags, _, offset, length, link, info, align, _ = fields
            found.append(_Section(sh_type, flags, offset, length, link, info, max(1, align)))
        return found

    def _read_symbols(self) -> list[_Symbol]:
        for section in self.sections:
            if section.kind == _SHT_SYMTAB:
                names = self.sections[section.link].offset
                return [self._symbol(section.offset + i, names) for i in range(0, section.size, 24)]
        raise CannotLoad("no symbol table")

    def _symbol(self, at: int, names: int) -> _Symbol:
        name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.code, at)
        end = self.code.index(b"\0", names + name)
        return _Symbol(
            self.code[names + name : end].decode(), section, value, info >> 4 == _STB_WEAK
        )

    # --- placing ---

    def place(self) -> mmap.mmap:
        """Copy, relocate and protect; returns the memory, which must outlive its use."""
        kept = [i for i, s in enumerate(self.sections) if s.flags & _SHF_ALLOC and s.size]
        fixed = [i for i in kept if not self.sections[i].flags & _SHF_WRITE]
        offsets: dict[int, int] = {}
        at = self._lay_out(fixed, offsets, 0)
        table = at = _up(at, _SLOT)
        unresolved = [s for s in self.symbols if s.section == _SHN_UNDEF and s.name]
        at = _up(at + _SLOT * len(unresolved), _PAGE)
        protected = at
        total = self._lay_out([i for i in kept if i not in fixed], offsets, at)
        memory = mmap.mmap(-1, _up(max(total, 1), _PAGE))
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for i, offset in offsets.items():
            section = self.sections[i]
            self.bases[i] = start + offset
            if section.kind != _SHT_NOBITS:
                data = self.code[section.offset : section.offset + section.size]
                memory[offset : offset + section.size] = data
        self._place_outside(memory, start, table, unresolved)
        self._name_symbols()
        for section in self.sections:
            if section.kind == _SHT_RELA and section.info in self.bases:
                self._relocate(memory, start, section)
        _make_executable(start, protected)
        return memory

    def _lay_out(self, sections: list[int], offsets: dict[int, int], at: int) -> int:
        for i in sections:
            at = _up(at, self.sections[i].align)
            offsets[i] = at
            at += self.sections[i].size
        return at

    def _place_outside(
        self, memory: mmap.mmap, start: int, table: int, symbols: list[_Symbol]
    ) -> None:
        """A slot per outside symbol: `jmp *2(%rip)`, two bytes of padding, the address.

        Calls go to the jump, references through a global offset table to the address after it,
        so both reach symbols that are further away than 2 GiB.
        """
        for i, symbol in enumerate(symbols):
            address = self.resolve(symbol.name)
            if address is None:
                if not symbol.is_weak:
                    raise CannotLoad(f"undefined symbol {symbol.name}")
                address = 0
            at = table + i * _SLOT
            memory[at : at + _SLOT] = b"\xff\x25\x02\0\0\0\x90\x90" + struct.pack("<Q", address)
            self.outside[symbol.name] = start + at

    def _name_symbols(self) -> None:
        for symbol in self.symbols:
            if symbol.section in self.bases and symbol.name:
                self.defined[symbol.name] = self.bases[symbol.section] + symbol.value

    def _relocate(self, memory: mmap.mmap, start: int, section: _Section) -> None:
        base = self.bases[section.info]
        for at in range(section.offset, section.offset + section.size, 24):
            offset, info, addend = struct.unpack_from("<QQq", self.code, at)
            symbol, kind = self.symbols[info >> 32], info & 0xFFFFFFFF
            place = base + offset
            if kind in _THROUGH_TABLE:
                if symbol.name not in self.outside:
                    raise CannotLoad(f"table reference to inner symbol {symbol.name}")
                value = self.outside[symbol.name] + 8 + addend - place
                self._write(memory, place - start, value, 4)
                continue
            target = self._address(symbol) + addend
            if kind in _ABSOLUTE:
                self._write(memory, place - start, target, 8)
            elif kind in _RELATIVE:
                self._write(memory, place - start, target - place, _RELATIVE[kind])
            else:
                raise CannotLoad(f"relocation of kind {kind}")

    def _address(self, symbol: _Symbol) -> int:
        if symbol.section in self.bases:
            return self.bases[symbol.section] + symbol.value
        if symbol.section == _SHN_UNDEF and symbol.name in self.outside:
            return self.outside[symbol.name]
        if symbol.section == _SHN_ABS:
            return symbol.value
        raise CannotLoad(f"symbol {symbol.name!r} in an unknown section")

    def _write(self, memory: mmap.mmap, at: int, value: int, size: int) -> None:
        limit = 1 << (8 * size - 1)
        if size == 4 and not -limit <= value < limit:
            raise CannotLoad("a relative reference does not reach")
        memory[at : at + size] = (value & (2 * limit - 1)).to_bytes(size, "little")


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def _make_executable(start: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if libc.mprotect(start, size, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise CannotLoad("the system does not let memory become executable")
