"""``isr datasets``: listed, fetched and drawn."""

from __future__ import annotations

import json

import pytest

from isrlearn.cli.app import run
from isrlearn.cli.datasets import catalogue


def test_the_list_says_where_data_come_from(capsys):
    assert run(["datasets", "list", "--json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert list(found) == list(catalogue())
    assert found["mc-cmnist"]["source"] == "public files"
    assert found["celeba"]["source"] == "a folder you download"
    assert found["digits-on-paper"]["source"] == "isrlearn"


def test_a_folder_is_checked_or_the_message_says_what_to_download(
    waterbirds_folder, tmp_path, capsys
):
    assert run(["datasets", "fetch", "waterbirds", "--data", str(waterbirds_folder)]) == 0
    assert "waterbirds is complete" in capsys.readouterr().out
    assert run(["datasets", "fetch", "waterbirds", "--data", str(tmp_path)]) == 2
    assert "metadata.csv does not exist: download and unpack https://" in capsys.readouterr().err


def test_a_drawing(waterbirds_folder, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "birds.png"
    arguments = ["datasets", "show", "waterbirds", "--data", str(waterbirds_folder)]
    assert run([*arguments, "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert str(out) in capsys.readouterr().out
    assert run([*arguments, "--out", str(out)]) == 2
    assert "this file exists already; use --force to replace it" in capsys.readouterr().err
    assert run([*arguments, "--out", str(out), "--force"]) == 0
    assert run(["datasets", "show", "no-such", "--out", str(out), "--force"]) == 2
    assert "there is no data set 'no-such'" in capsys.readouterr().err


def test_folders_are_no_tables(tmp_path, capsys):
    assert run(["datasets", "write", "celeba", "--out", str(tmp_path)]) == 2
    assert "not a table; extract features into a .npz file first" in capsys.readouterr().err
