"""Records survive whatever ends a run, and say so when they cannot."""

from __future__ import annotations

import json
import multiprocessing
from contextlib import ExitStack
from dataclasses import replace

import pytest

from isrlearn.paper.records import (
    SCHEMA,
    CellKey,
    Record,
    RecordError,
    RecordFile,
    read_records,
)

EXPERIMENT = "linear-unit-tests"


def made(seed: int, value: float = 0.1) -> Record:
    key = CellKey("3s'", "erm", 2, seed, "converged", {"penalty": 0.1 + 0.2}, {"n_samples": 10})
    return Record(key, value, 0.0, [value, value], 0.5, ["UserWarning: ±"], {"numpy": "2"})


def recorded(directory, *records: Record):
    with RecordFile(directory, EXPERIMENT, "isr bench") as file:
        for record in records:
            file.append(record)
    return directory / "results.jsonl"


def test_a_record_reads_back_as_it_was(tmp_path):
    records = [made(0, 1 / 3), made(1, 5e-324)]
    assert list(read_records(recorded(tmp_path, *records)).values()) == records


def test_the_id_depends_on_every_field_of_the_key_and_on_nothing_else():
    key = made(0).key
    changed = [
        replace(key, dataset="3s"),
        replace(key, method="iga"),
        replace(key, n_environments=3),
        replace(key, seed=1),
        replace(key, optimizer="published"),
        replace(key, parameters={"penalty": 0.3}),
        replace(key, options={"n_samples": 11}),
    ]
    assert len({key.id, *(other.id for other in changed)}) == 8
    assert replace(key, parameters=dict(key.parameters)).id == key.id
    # Fixed for good: ids of files already written must keep their meaning.
    assert CellKey("3s", "erm", 2, 0, "converged").id == "01879fb093433f87"


def test_opening_again_continues_after_what_is_there(tmp_path):
    path = recorded(tmp_path, made(0))
    before = path.read_bytes()
    with RecordFile(tmp_path, EXPERIMENT, "another command") as file:
        assert list(file.by_id) == [made(0).key.id]
        file.append(made(1))
    assert path.read_bytes().startswith(before)
    assert list(read_records(path).values()) == [made(0), made(1)]


@pytest.mark.parametrize("cut", [1, 2, 10, 200])
def test_a_truncated_last_line_is_cut_off_with_a_warning_and_the_rest_is_kept(tmp_path, cut):
    path = recorded(tmp_path, made(0), made(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    if cut == 1:  # only the line's end is missing: nothing is lost
        with RecordFile(tmp_path, EXPERIMENT) as file:
            assert len(file.by_id) == 2
    else:
        file = RecordFile(tmp_path, EXPERIMENT)
        with pytest.warns(UserWarning, match="last line was cut off"):
            file.__enter__()
        with ExitStack() as stack:
            stack.push(file)
            assert list(file.by_id) == [made(0).key.id]
            file.append(made(1))
    assert path.read_bytes() == whole


def test_reading_alone_leaves_a_truncated_file_as_it_is(tmp_path):
    path = recorded(tmp_path, made(0), made(1))
    path.write_bytes(path.read_bytes()[:-7])
    before = path.read_bytes()
    with pytest.warns(UserWarning, match="cut off"):
        assert len(read_records(path)) == 1
    assert path.read_bytes() == before


def test_a_line_of_zeros_left_by_a_power_failure_is_dropped_too(tmp_path):
    path = recorded(tmp_path, made(0))
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 50 + b"\n")
    with pytest.warns(UserWarning, match="cut off"), RecordFile(tmp_path, EXPERIMENT):
        pass
    assert path.read_bytes() == whole


def test_damage_in_the_middle_is_an_error_and_names_the_line(tmp_path):
    path = recorded(tmp_path, made(0), made(1))
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:30]
    path.write_bytes(b"\n".join(lines))
    with (
        pytest.raises(RecordError, match="line 2 is not a record"),
        RecordFile(tmp_path, EXPERIMENT),
    ):
        pass


def test_a_record_whose_id_is_not_its_keys_is_refused(tmp_path):
    fields = json.loads(made(0).line())
    fields["key"]["seed"] = 5
    with pytest.raises(ValueError, match="does not belong"):
        Record.from_line(json.dumps(fields))


@pytest.mark.parametrize(
    ("first_line", "message"),
    [
        ('{"schema": "isrlearn-benchmark/99", "experiment": "x"}', "isrlearn-benchmark/99"),
        ("not json", "does not begin with a header"),
        ("[]", "does not begin with a header"),
        ("", "does not begin with a header"),
    ],
)
def test_a_file_of_another_schema_is_refused_and_left_alone(tmp_path, first_line, message):
    path = tmp_path / "results.jsonl"
    path.write_text(first_line + "\n")
    with pytest.raises(RecordError, match=message), RecordFile(tmp_path, EXPERIMENT):
        pass
    assert path.read_text() == first_line + "\n"
    path.write_text(json.dumps({"schema": SCHEMA, "experiment": EXPERIMENT}) + "\n")
    with RecordFile(tmp_path, EXPERIMENT):  # the refusal has let go of the lock
        pass


def test_records_of_another_experiment_are_refused(tmp_path):
    recorded(tmp_path, made(0))
    with pytest.raises(RecordError, match="'linear-unit-tests', not of 'regression'"):
        RecordFile(tmp_path, "regression").__enter__()


def test_a_second_run_on_the_same_directory_is_refused(tmp_path):
    with RecordFile(tmp_path, EXPERIMENT):
        with pytest.raises(RecordError, match="another run is writing"):
            RecordFile(tmp_path, EXPERIMENT).__enter__()
        # From another process too.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            file = RecordFile(tmp_path, EXPERIMENT)
            with pytest.raises(RecordError, match="another run is writing"):
                pool.apply(RecordFile.__enter__, (file,))
    with RecordFile(tmp_path, EXPERIMENT):
        pass


def test_an_infinite_error_reads_back_and_nan_is_never_written(tmp_path):
    diverged = replace(made(0, float("inf")), validation=float("inf"))
    with RecordFile(tmp_path, EXPERIMENT) as file:
        file.append(diverged)
        with pytest.raises(ValueError, match="JSON"):
            file.append(made(1, float("nan")))
        file.append(made(2))
    assert "Infinity" not in file.path.read_text()
    assert list(read_records(file.path).values()) == [diverged, made(2)]
