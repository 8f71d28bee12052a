"""Rows read block by block: any object that slices like an array works as one."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.engine import ArrayRows, cell_moments, row_blocks


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float16", "float32"), ("float32", "float32"), ("int16", "float64"), ("float64", "float64")],
)
def test_blocks_are_the_array(dtype, expected):
    array = np.random.default_rng(0).normal(size=(40_000, 4)).astype(dtype)
    source = ArrayRows(array, columns=[3, 1])
    assert source.dtype == expected
    assert source.shape == (40_000, 2)
    blocks = list(row_blocks(source))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), array[:, [3, 1]])
    assert all(block.dtype == expected for _, block in blocks)
    starts = [rows.start for rows, _ in blocks]
    assert starts == [0, *(rows.stop for rows, _ in blocks[:-1])]
    e = np.arange(len(array)) % 3
    whole = cell_moments(array[:, [3, 1]].astype(float), None, e)
    np.testing.assert_allclose(cell_moments(source, None, e).mean, whole.mean, atol=1e-5)


def test_rows_have_two_dimensions():
    with pytest.raises(ValueError, match=r"rows must have 2 dimensions; these .* \(3,\)"):
        ArrayRows(np.zeros(3))
