"""Entries on disk: whole or not there, whatever happens around them."""

from __future__ import annotations

import errno
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tilelang.runtime import store as store_module
from tilelang.runtime.store import Damaged, Store

KEY = "ab" * 32


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read(KEY) is None
    store.write(KEY, {"kernel.o": b"\x00\x01", "kernel.ll": b"text"}, {"name": "f"})
    entry = store.read(KEY)
    assert entry is not None
    assert entry.meta == {"name": "f"}
    assert {name: entry.read(name) for name in entry.files} == {
        "kernel.o": b"\x00\x01",
        "kernel.ll": b"text",
    }


def test_the_first_writer_wins(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(KEY, {"a": b"1"}, {})
    store.write(KEY, {"a": b"2"}, {})
    entry = store.read(KEY)
    assert entry is not None and entry.read("a") == b"1"
    assert list((tmp_path / "tmp").iterdir()) == []


def damage_truncate(path: Path) -> None:
    file = path / "kernel.o"
    file.write_bytes(file.read_bytes()[:-1])


def damage_flip(path: Path) -> None:
    (path / "kernel.o").write_bytes(b"\xff" * 100)


def damage_missing(path: Path) -> None:
    (path / "kernel.o").unlink()


def damage_index(path: Path) -> None:
    (path / "entry.json").write_text('{"meta": {')


def damage_index_shape(path: Path) -> None:
    (path / "entry.json").write_text("[]")


def damage_index_bytes(path: Path) -> None:
    (path / "entry.json").write_bytes(b"\xff\xfe")


def damage_no_index(path: Path) -> None:
    (path / "entry.json").unlink()


@pytest.mark.parametrize(
    "damage",
    [damage_truncate, damage_flip, damage_missing, damage_index, damage_index_shape,
     damage_index_bytes, damage_no_index],
)  # fmt: skip
def test_damage_is_noticed_and_can_be_repaired(tmp_path: Path, damage: object) -> None:
    store = Store(tmp_path)
    store.write(KEY, {"kernel.o": b"x" * 100}, {})
    assert callable(damage)
    damage(store.path(KEY))
    with pytest.raises(Damaged):
        store.read(KEY)
    store.remove(KEY)
    assert store.read(KEY) is None
    store.write(KEY, {"kernel.o": b"y"}, {})
    entry = store.read(KEY)
    assert entry is not None and entry.read("kernel.o") == b"y"


def test_a_file_where_an_entry_should_be(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.path(KEY).parent.mkdir(parents=True)
    store.path(KEY).write_text("not a directory")
    with pytest.raises(Damaged):
        store.read(KEY)
    store.remove(KEY)
    assert store.read(KEY) is None


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    real = store_module._put

    def full(path: Path, data: bytes | Path) -> str:
        if path.name == "b":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(store_module, "_put", full)
    with pytest.raises(OSError):
        store.write(KEY, {"a": b"1", "b": b"2"}, {})
    assert store.read(KEY) is None
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [f"{i:02d}" * 32 for i in range(4)]
    for age, key in enumerate(keys):
        store.write(key, {"data": b"z" * 1000}, {})
        os.utime(store.path(key), (1000 + age, 1000 + age))
    store.touch(keys[0])
    size = next(store.entries())[1]
    assert store.shrink(2 * size) == 2
    assert [k for k in keys if store.read(k) is not None] == [keys[0], keys[3]]
    assert store.shrink(2 * size) == 0


def test_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old, new = tmp_path / "tmp" / "1-old", tmp_path / "tmp" / "2-new"
    old.mkdir(parents=True)
    new.mkdir()
    os.utime(old, (0, 0))
    store.shrink(10)
    assert not old.exists() and new.exists()


def test_clear(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for i in range(3):
        store.write(f"{i:02d}" * 32, {}, {})
    assert store.clear() == 3
    assert list(store.entries()) == []


def hammer(root: str, seed: int) -> int:
    """Write, read and remove the same few keys; how many reads saw a torn entry."""
    store = Store(Path(root))
    torn = 0
    for i in range(60):
        key = f"{(i * 7 + seed) % 3:02d}" * 32
        store.write(key, {"data": key.encode() * 200}, {"key": key})
        try:
            entry = store.read(key)
            if entry is not None and entry.meta["key"] != key:
                torn += 1
        except Damaged as damage:
            # Another process removed the entry between the index and its file.
            torn += "missing" not in str(damage)
        if i % 5 == seed % 5:
            store.remove(key)
    return torn


def test_many_processes_never_see_half_an_entry(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=spawn) as pool:
        torn = list(pool.map(hammer, [str(tmp_path)] * 4, range(4)))
    assert torn == [0, 0, 0, 0]
