"""Files are complete or absent: full disks, interrupts, links and devices."""

from __future__ import annotations

import errno
import os

import pytest

from isrlearn import ISRClassifier
from isrlearn.io import OutputError, export_model, save, write_predictions
from isrlearn.io.files import atomic_write, check_output, check_writable
from isrlearn.report import make_report


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.isr"
    file.write_bytes(b"old")
    return file


def assert_untouched(path):
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_is_interrupted_never_was(path, stop):
    def interrupted():
        with atomic_write(path) as file:
            file.write(b"new, but not wh")
            file.flush()
            raise stop

    with pytest.raises(stop):
        interrupted()
    assert_untouched(path)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_is_named_and_leaves_nothing(path, monkeypatch, call):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with (
        pytest.raises(OSError, match="No space left on device") as caught,
        atomic_write(path) as file,
    ):
        file.write(b"new")
    assert caught.value.filename == str(path)
    assert_untouched(path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_device_is_written_to_not_replaced():
    before = os.stat("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught, atomic_write("/dev/full") as file:
        file.write(b"new")
    assert caught.value.filename == "/dev/full"
    assert os.stat("/dev/full").st_rdev == before.st_rdev
    with atomic_write("/dev/null") as file:
        file.write(b"new")
    assert not os.path.isfile("/dev/null")


def test_a_link_is_followed(path, tmp_path):
    link = tmp_path / "link.isr"
    link.symlink_to(path)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_errors_of_other_files_keep_their_names(path):
    with pytest.raises(FileNotFoundError) as caught, atomic_write(path):
        os.stat("/no/such/folder/table.csv")
    assert caught.value.filename == "/no/such/folder/table.csv"
    assert_untouched(path)


def test_what_cannot_be_written_is_known_before_the_work(path):
    check_writable(path)
    check_writable(path.with_name("new.isr"))
    with pytest.raises(IsADirectoryError, match="This is a folder"):
        check_writable(path.parent)
    for bad in (path / "model.isr", path.parent / "no" / "model.isr"):
        with pytest.raises(FileNotFoundError, match="no such folder"):
            check_writable(bad)


def test_what_may_not_be_written_is_known_before_the_work(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(PermissionError, match="cannot be written to"):
        check_writable(path)


class TestWhatAnOutputMayReplace:
    @pytest.fixture
    def fitted(self, sample):
        return ISRClassifier(n_spurious=1).fit(sample.X, sample.y, environments=sample.environments)

    def test_never_an_input_however_it_is_spelled(self, path, tmp_path, monkeypatch):
        (tmp_path / "symbolic").symlink_to(path)
        os.link(path, tmp_path / "hard")
        (tmp_path / "sub").mkdir()
        (tmp_path / "there").symlink_to(tmp_path)
        monkeypatch.chdir(tmp_path)
        names = ["model.isr", "./sub/../model.isr", "symbolic", "hard", "there/model.isr"]
        for out in [*names, str(path)]:
            for given in [*names, str(path)]:
                with pytest.raises(OutputError, match="this is an input of the same command"):
                    check_output(out, ["none.csv", given], kind="model", force=True)
        with pytest.raises(OutputError, match="this is a part of an input"):
            check_output(path, [tmp_path], kind="model", force=True)
        check_output("new.isr", names)
        assert path.read_bytes() == b"old"

    def test_a_file_of_the_same_kind_only(self, fitted, sample, tmp_path):
        rows = sample.X, sample.y, sample.environments
        outputs = {
            "m.isr": ("model", lambda p: save(fitted, p)),
            "p.csv": ("predictions", lambda p: write_predictions(fitted, sample.X, p)),
            "p.tsv": ("predictions", lambda p: write_predictions(fitted, sample.X, p)),
            "p.npz": ("predictions", lambda p: write_predictions(fitted, sample.X, p)),
            "p.parquet": ("predictions", lambda p: write_predictions(fitted, sample.X, p)),
            "e.onnx": ("export", lambda p: export_model(fitted, "onnx", p)),
            "e.npz": ("export", lambda p: export_model(fitted, "numpy", p)),
            "e.safetensors": ("export", lambda p: export_model(fitted, "torch", p)),
            "r.html": ("report", lambda p: make_report(fitted, rows).save(p)),
            "users.csv": (None, lambda p: p.write_text("prediction2,a\n1,2\n")),
            "users.html": (None, lambda p: p.write_text("<!doctype html><title>mine</title>")),
        }
        for name, (own, write) in outputs.items():
            path = tmp_path / name
            check_output(path, kind=own)  # not there yet
            write(path)
            for kind in ("model", "predictions", "report", "export", None):
                if kind is not None and kind == own:
                    check_output(path, kind=kind)
                else:
                    with pytest.raises(OutputError, match="exists already"):
                        check_output(path, kind=kind)
                check_output(path, kind=kind, force=True)

    def test_devices_are_no_files(self):
        check_output("/dev/null", kind="model")
