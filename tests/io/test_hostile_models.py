"""Mutated model files: our error or the same model, no code run, memory bounded."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import isrlearn
from isrlearn import ISRClassifier, TablePreparer
from isrlearn.datasets import make_gaussian_environments
from isrlearn.io import ModelFileError
from isrlearn.io import model as module

MEGABYTE = 1 << 20
FORBIDDEN = ("pickle.", "exec", "compile", "os.system", "os.exec", "subprocess.", "socket.")


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code was run')",))


@pytest.fixture(scope="module")
def ran():
    """Names of audit events that loading a model must not cause."""
    events: list[str] = []
    watching = [True]

    def hook(event, arguments):
        if watching[0] and event.startswith(FORBIDDEN):
            events.append(event)

    sys.addaudithook(hook)
    yield events
    watching[0] = False  # a hook cannot be removed


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model file with every kind of array, and the map that it stores."""
    data = make_gaussian_environments(
        50, 3, n_invariant=2, n_spurious=1, n_classes=3, random_state=0
    )
    environments = np.asarray(data.environments, dtype=object)
    environments[::5] = None
    clf = ISRClassifier(weights={0: 2.0}).fit(data.X, data.y, environments=environments)
    path = tmp_path_factory.mktemp("models") / "model.isr"
    isrlearn.save(clf, path, feature_names=list("abc"), metadata={"note": ["x", {"y": 1}]})
    isrlearn.load(path)  # imports everything before the audit hook is set
    return path.read_bytes(), map_of(clf)


def map_of(estimator):
    """The affine map and the classes, which are all that predictions depend on."""
    arrays = estimator.coef_, estimator.intercept_, estimator.classes_
    return [(array.tobytes(), array.shape, array.strides) for array in arrays]


@pytest.fixture
def outcome(saved, ran, tmp_path):
    """Loads bytes: "error", "same" or "other" model; checks that it stayed harmless."""
    _, original = saved
    path = tmp_path / "mutated.isr"
    # Kept open: creating a file takes longer than loading it.
    file = open(path, "wb")  # noqa: SIM115

    def load(content):
        file.seek(0)
        file.write(content)
        file.truncate()
        file.flush()
        ran.clear()
        tracemalloc.reset_peak()
        try:
            estimator = isrlearn.load(path)
        except ModelFileError as error:
            result, message = "error", str(error)
            assert message.startswith(str(path))
            assert "\n" not in message
            assert len(message) < 1000
        else:
            result = "same" if map_of(estimator) == original else "other"
        assert not ran
        return result

    tracemalloc.start()
    yield load
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    file.close()
    assert peak < 32 * MEGABYTE


def flipped(content, rng):
    out = bytearray(content)
    for place in rng.integers(len(out), size=rng.integers(1, 5)):
        out[place] ^= 1 << rng.integers(8)
    return bytes(out)


def overwritten(content, rng):
    out = bytearray(content)
    start = rng.integers(len(out))
    out[start : start + rng.integers(1, 64)] = rng.bytes(rng.integers(1, 64))
    return bytes(out)


def cut(content, rng):
    return content[: rng.integers(len(content))]


def lengthened(content, rng):
    return content + rng.bytes(rng.integers(1, 200))


def shuffled(content, rng):
    a, b = np.sort(rng.integers(len(content), size=2))
    return content[a:b] + content[:a] + content[b:]


def long_header(content, rng):
    length = int(2 ** rng.uniform(0, 64))
    return min(length, 2**64 - 1).to_bytes(8, "little") + content[8:]


UNSIGNED = [flipped, overwritten, cut, lengthened, shuffled, long_header]


@pytest.mark.slow
@pytest.mark.parametrize("mutation", UNSIGNED, ids=lambda m: m.__name__)
def test_damaged_files(mutation, saved, outcome):
    rng = np.random.default_rng(0)
    content = saved[0]
    seen = {"error": 0, "same": 0, "other": 0}
    for _ in range(1000):
        seen[outcome(mutation(content, rng))] += 1
    assert seen["other"] == 0
    assert seen["error"] > 900


# Content with a valid hash can still be hostile: an attacker can compute the hash too.
WEIRD = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    "",
    "x" * 1000,
    "ISRTransformer",
    "LinearSVC",
    "os.system",
    "nan",
    [],
    [[]],
    {},
    {"float": "inf"},
    {"pairs": [[1, 2]]},
    {"pairs": [[[], 2]]},
    {"tuple": [1, "a"]},
    {"estimator": ["LogisticRegression", {"C": 3}]},
    {"estimator": ["system", {"command": "touch x"}]},
    {"estimator": ["LogisticRegression", {"no_such": 3}]},
    {"value": ["Eraser", {}]},
    {"value": ["system", {"command": "touch x"}]},
    {"array": ["coef_", "C"]},
    {"array": ["coef_", "system"]},
    {"array": ["no_such", "C"]},
    {"labels": ["object", [None]]},
    {"labels": ["int8", [1, 2, 400]]},
    {"labels": ["str", ["a", "b", "b"]]},
    {"labels": ["complex128", [1, 2, 3]]},
    {"labels": ["float64", [1, 2, 3]]},
]


def nodes(tree, path=()):
    """Paths to every value of nested lists and dicts."""
    yield path
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from nodes(tree[key], (*path, key))


def changed(tree, rng):
    """A tree with one value replaced, removed, duplicated or added."""
    tree = copy.deepcopy(tree)
    paths = list(nodes(tree))[1:]
    *above, last = paths[rng.integers(len(paths))]
    place = tree
    for key in above:
        place = place[key]
    what = rng.integers(8)
    if what == 0:
        del place[last]
    elif what == 1 and isinstance(place, list):
        place.append(place[last])
    elif what == 1:
        place["another"] = place[last]
    else:
        place[last] = WEIRD[rng.integers(len(WEIRD))]
    return tree


def parts(content):
    """Header and data of a model file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def record_of(header):
    """The description of a model, without its hash."""
    record = json.loads(header["__metadata__"]["isrlearn"])
    del record["sha256"]
    return record


def joined(header, data):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def arrays_of(header, data):
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def signed(arrays, text):
    """A model file with a valid hash, whatever its content."""
    record = json.loads(text)
    record["sha256"] = module._digest(arrays, record)
    data, table = b"", {"__metadata__": {"isrlearn": json.dumps(record)}}
    for name, array in arrays.items():
        place = [len(data), len(data) + array.nbytes]
        table[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": place}
        data += array.tobytes()
    return joined(table, data)


@pytest.mark.slow
def test_changed_headers(saved, outcome):
    rng = np.random.default_rng(1)
    header, data = parts(saved[0])
    seen = {"error": 0, "same": 0, "other": 0}
    for _ in range(1500):
        seen[outcome(joined(changed(header, rng), data))] += 1
    assert seen["other"] == 0
    assert seen["error"] > 1300


@pytest.mark.slow
def test_changed_descriptions_with_the_right_hash(saved, outcome):
    rng = np.random.default_rng(2)
    header, data = parts(saved[0])
    arrays, model = arrays_of(header, data), record_of(header)
    assert outcome(signed(arrays, json.dumps(model))) == "same"
    seen = {"error": 0, "same": 0, "other": 0}
    for _ in range(1500):
        seen[outcome(signed(arrays, json.dumps(changed(model, rng))))] += 1
    # Only the arrays determine predictions; a changed parameter is harmless.
    assert seen["error"] > 900
    assert seen["same"] > 200


@pytest.mark.slow
def test_changed_arrays_with_the_right_hash(saved, outcome):
    rng = np.random.default_rng(3)
    header, data = parts(saved[0])
    text = json.dumps(record_of(header))
    original = arrays_of(header, data)
    names = list(original)
    for _ in range(1000):
        arrays = dict(original)
        name = names[rng.integers(len(names))]
        array = np.array(arrays[name])
        what = rng.integers(6)
        if what == 0:
            del arrays[name]
        elif what == 1:
            arrays[f"{name}_"] = array
        elif what == 2 and array.size:
            array.flat[rng.integers(array.size)] = [np.nan, np.inf, -np.inf][rng.integers(3)]
            arrays[name] = array
        elif what == 3:
            arrays[name] = array[None]
        elif what == 4:
            arrays[name] = np.concatenate([array, array])
        else:
            arrays[name] = np.zeros((0, *array.shape[1:]))
        result = outcome(signed(arrays, text))
        # The spectrum may have any length; all other shapes must match.
        if name not in ("spectrum_", "rank_test_.spectrum"):
            assert result == "error"


def test_pickles_are_never_opened(outcome):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert outcome(pickle.dumps(Bomb(), protocol)) == "error"
        assert outcome(pickle.dumps([Bomb()] * 10, protocol) * 100) == "error"


@pytest.mark.parametrize("length", [0, 1, 7, 2**24, 2**24 + 1, 2**31, 2**63, 2**64 - 1])
def test_header_lengths(saved, outcome, length):
    assert outcome(length.to_bytes(8, "little") + saved[0][8:]) == "error"
    assert outcome(length.to_bytes(8, "little")) == "error"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"__metadata__": {}, "__metadata__": {}}',
        '{"__metadata__": {"a": "1", "a": "2"}}',
        '{"__metadata__": []}',
        '{"x": {"dtype": "F64", "shape": [NaN], "data_offsets": [0, 0]}}',
        '{"x": {"dtype": "F64", "shape": [1e400], "data_offsets": [0, 0]}}',
        '{"x": {"dtype": "F64", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}}',
        '{"x": {"dtype": "F64", "shape": [0, 9999999999999], "data_offsets": [0, 0]}}',
        '{"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 9999999999999]}}',
        '{"x": {"dtype": "F64", "shape": [-1], "data_offsets": [8, 0]}}',
        '{"x": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}',
        '{"x": {"dtype": ["F64"], "shape": [1], "data_offsets": [0, 8]}}',
        '{"x": {"dtype": "F64", "shape": ' + "1" * 5000 + "}}",
        '{"x": 1' + "0" * 5000 + "}",
        "null",
        '"' + "x" * 100_000 + '"',
        "\ud800",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_headers_that_mean_harm(outcome, text):
    content = text.encode("utf-8", "surrogatepass")
    for data in (b"", b"\0" * 8):
        assert outcome(len(content).to_bytes(8, "little") + content + data) == "error"


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("schema", 1, "its schema is 1, and isrlearn"),
        ("schema", "one", "another version may read it"),
        ("sha256", "0" * 64, "SHA-256 differs"),
        ("state", {}, "SHA-256 differs"),
    ],
)
def test_the_error_says_what_is_wrong(saved, tmp_path, entry, value, message):
    header, data = parts(saved[0])
    record = json.loads(header["__metadata__"]["isrlearn"])
    header["__metadata__"]["isrlearn"] = json.dumps(record | {entry: value})
    (tmp_path / "m").write_bytes(joined(header, data))
    with pytest.raises(ModelFileError, match=message):
        isrlearn.load(tmp_path / "m")
    header["__metadata__"] = {"format": "pt"}
    (tmp_path / "m").write_bytes(joined(header, data))
    with pytest.raises(ModelFileError, match="not a model of isrlearn"):
        isrlearn.load(tmp_path / "m")


def test_files_of_other_kinds(tmp_path):
    np.savez(tmp_path / "a.npz", x=1)
    with pytest.raises(ModelFileError, match=r"skops\.io\.load"):
        isrlearn.load(tmp_path / "a.npz")
    (tmp_path / "empty").touch()
    with pytest.raises(ModelFileError, match="not a model file"):
        isrlearn.load(tmp_path / "empty")
    with pytest.raises(IsADirectoryError):
        isrlearn.load(tmp_path)


def test_a_small_file_takes_little_memory(saved, outcome):
    """A megabyte of JSON whose labels would take gigabytes as arrays of text."""
    header, data = parts(saved[0])
    arrays, record = arrays_of(header, data), record_of(header)
    labels = {"labels": ["str", ["a" * 500_000, *map(str, range(50_000))]]}
    fitted = record["state"]["fitted"]
    fitted["classes_"] = fitted["environments_"] = labels
    fitted["moments_"]["value"][1] |= {"classes": labels, "environments": labels}
    content = signed(arrays, json.dumps(record))
    assert len(content) < 5 * MEGABYTE
    assert outcome(content) == "error"  # which also checks the memory


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A model file with a preparation of numbers and categories."""
    rng = np.random.default_rng(0)
    columns = {"age": rng.normal(size=90), "city": np.array(["a", "b", "c"] * 30)}
    columns["age"][::9] = np.nan
    preparer = TablePreparer().fit(columns)
    clf = ISRClassifier(n_spurious=1)
    clf.fit(preparer.transform(columns), np.arange(90) % 2, environments=np.arange(90) % 4 // 2)
    path = tmp_path_factory.mktemp("models") / "model.isr"
    isrlearn.save(make_pipeline(preparer, clf), path)
    header, data = parts(path.read_bytes())
    return arrays_of(header, data), record_of(header)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3),
        ("name", "city"),
        ("use", "script"),
        ("why", None),
        ("fill", "os.system"),
        ("fill", None),
        ("fill", True),
        ("fill", 1e400),
        ("categories", ["a"]),
        ("categories", {"tuple": [1]}),
        ("categories", {"tuple": ["a", "a"]}),
        ("missing", 1),
        ("missing", False),
        ("more", 1),
    ],
)
def test_a_changed_preparation_is_refused(prepared, tmp_path, field, value):
    arrays, record = prepared
    record = copy.deepcopy(record)
    record["preparation"][0]["fitted"]["columns_"]["tuple"][0]["value"][1][field] = value
    (tmp_path / "m").write_bytes(signed(arrays, json.dumps(record)))
    with pytest.raises(ModelFileError):
        isrlearn.load(tmp_path / "m")


def test_only_known_steps_are_loaded(prepared, tmp_path):
    arrays, record = prepared
    for steps in ({}, [{}], [record["state"]], record["preparation"] * 2, None):
        (tmp_path / "m").write_bytes(signed(arrays, json.dumps(record | {"preparation": steps})))
        with pytest.raises(ModelFileError):
            isrlearn.load(tmp_path / "m")
    (tmp_path / "m").write_bytes(signed(arrays, json.dumps(record)))
    assert len(isrlearn.load(tmp_path / "m")) == 2
