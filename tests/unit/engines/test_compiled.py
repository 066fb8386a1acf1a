"""Compiled loops are kept where nobody else can put code, and nowhere else."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plume.engines import compiled
from plume.engines.compiled import is_private, private_folder


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    private_folder.cache_clear()
    yield
    private_folder.cache_clear()


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for caches; where tests write, nobody else does."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def test_loops_are_kept_in_a_folder_of_this_user(caches: Path) -> None:
    folder = private_folder()
    assert folder is not None
    assert folder.is_relative_to(caches / "plume" / "compiled")
    assert [one.stat().st_mode & 0o777 for one in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
@pytest.mark.parametrize("which", ["plume", "plume/compiled", "."])
def test_nothing_is_kept_where_others_can_write(which: str, mode: int, caches: Path) -> None:
    assert private_folder() is not None
    (caches / which).chmod(mode)
    private_folder.cache_clear()
    assert private_folder() is None


@pytest.mark.usefixtures("caches")
def test_nothing_is_kept_beside_a_file_that_others_can_write() -> None:
    folder = private_folder()
    assert folder is not None
    planted = folder / "loops" / "loop.nbi"
    planted.parent.mkdir()
    planted.write_bytes(b"")
    assert is_private(folder)
    planted.chmod(0o666)
    assert not is_private(folder)


def test_nothing_is_kept_behind_a_link(caches: Path, tmp_path: Path) -> None:
    assert private_folder() is not None
    (tmp_path / "elsewhere").mkdir()
    for inner in (caches / "plume" / "compiled").iterdir():
        inner.rmdir()
        inner.symlink_to(tmp_path / "elsewhere")
    private_folder.cache_clear()
    assert private_folder() is None


@pytest.mark.usefixtures("caches")
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the administrator gives folders away")
def test_nothing_is_kept_in_a_folder_of_somebody_else() -> None:
    folder = private_folder()
    assert folder is not None
    os.chown(folder, 12345, 12345)
    private_folder.cache_clear()
    assert private_folder() is None


def test_nothing_is_kept_without_a_folder_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert private_folder() is None


@pytest.mark.usefixtures("caches")
def test_nothing_is_kept_where_owners_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid", raising=False)
    assert private_folder() is None


def test_numba_keeps_loops_there_and_its_setting_is_as_it_was(caches: Path) -> None:
    numba = pytest.importorskip("numba")
    before = numba.config.CACHE_DIR
    loop = compiled.compiled(_double)
    assert loop(4) == 8
    assert before == numba.config.CACHE_DIR
    assert any(path.suffix == ".nbi" for path in caches.rglob("*"))
    assert not list((Path(__file__).parent / "__pycache__").glob("*.nb?"))


def test_where_numba_cannot_write_there_loops_are_kept_nowhere_else(caches: Path) -> None:
    """By itself it goes on to the folder of the source and to one of its own, in which others may have put code."""
    pytest.importorskip("numba")
    kept = Path(compiled.compiled(_double).stats.cache_path)
    assert kept.is_relative_to(caches)
    kept.rmdir()
    kept.write_text("")  # in the way, as a full disk or other rights would be
    loop = compiled.compiled(_double)
    assert loop.stats.cache_path is None
    assert loop(4) == 8
    assert not list((Path(__file__).parent / "__pycache__").glob("*.nb?"))


def test_no_setting_of_numbas_has_loops_kept_elsewhere(
    caches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads settings from the folder that a process is started in, too, which others may be able to write to."""
    numba = pytest.importorskip("numba")
    del caches
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "InTreeCacheLocator", raising=False)
    loop = compiled.compiled(_double)
    assert loop.stats.cache_path is None or Path(loop.stats.cache_path).is_relative_to(tmp_path / "caches")
    assert loop(4) == 8
    assert not (tmp_path / "elsewhere").exists()
    assert not list((Path(__file__).parent / "__pycache__").glob("*.nb?"))


def test_without_a_folder_loops_are_compiled_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "private_folder", lambda: None)
    loop = compiled.compiled(_double)
    assert loop(4) == 8
    assert type(loop._cache) is numba.core.caching.NullCache


def _double(number: int) -> int:
    return 2 * number
