"""The ONNX graph of a fitted estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Old enough for runtimes of the last years, new enough for every operator used.
_OPSET, _IR = 17, 8


def onnx_model(estimator: Any, dtype: np.dtype, notes: Mapping[str, str]) -> Any:
    """ModelProto whose input is X and whose outputs depend on the kind of estimator."""
    graph = _Graph(dtype)
    if hasattr(estimator, "classes_"):
        _classifier(graph, estimator)
    elif hasattr(estimator, "coef_"):
        column = graph.gemm("X", estimator.coef_[None], np.atleast_1d(estimator.intercept_))
        axis = graph.constant("axis", np.array([1], dtype=np.int64))
        graph.add("Squeeze", [column, axis], "prediction")
        graph.output("prediction", dtype, ["rows"])
    else:
        _transformer(graph, estimator)
    return graph.model(estimator.n_features_in_, notes)


def _classifier(graph: _Graph, estimator: Any) -> None:
    coef, intercept = estimator.coef_, estimator.intercept_
    K = len(estimator.classes_)
    if K == 2:
        # Logits 0 and s: their softmax are the probabilities, and a tie is the first class.
        coef = np.concatenate([np.zeros_like(coef), coef])
        intercept = np.concatenate([np.zeros_like(intercept), intercept])
    graph.gemm("X", coef, intercept, name="logits")
    graph.add("ArgMax", ["logits"], "code", axis=1, keepdims=0)
    classes = graph.constant("classes", _labels(estimator.classes_))
    graph.add("Gather", [classes, "code"], "label", axis=0)
    graph.output("label", _labels(estimator.classes_).dtype, ["rows"])
    graph.output("logits", graph.dtype, ["rows", K])
    if hasattr(estimator, "predict_proba"):
        graph.add("Softmax", ["logits"], "probabilities", axis=1)
        graph.output("probabilities", graph.dtype, ["rows", K])


def _transformer(graph: _Graph, estimator: Any) -> None:
    eraser, d = estimator.eraser_, estimator.n_features_in_
    if estimator._invariant is not None:
        width = estimator._invariant.shape[1]
        graph.gemm("X", estimator._invariant.T, np.zeros(width), name="features")
    elif not eraser.basis.shape[1]:
        width = d
        graph.add("Identity", ["X"], "features")
    else:
        # Thin factors: x − (1−s) U Vᵀ(x − c).
        width = d
        graph.gemm("X", eraser.dual.T, -(eraser.dual.T @ eraser.center), name="spurious")
        change = graph.gemm("spurious", (eraser.scale - 1.0) * eraser.basis, np.zeros(d))
        graph.add("Add", ["X", change], "features")
    graph.output("features", graph.dtype, ["rows", width])


def _labels(classes: NDArray) -> NDArray:
    """Classes as ONNX knows them: whole numbers, numbers or text."""
    values = classes.tolist()
    if all(type(v) in (bool, int) for v in values):
        return np.array(values, dtype=np.int64)
    if all(type(v) in (int, float) for v in values):
        return np.array(values, dtype=np.float64)
    return np.array([str(v) for v in values], dtype=object)


class _Graph:
    """Nodes, constants and outputs of a graph as they are added."""

    def __init__(self, dtype: np.dtype) -> None:
        try:
            import onnx
        except ImportError:
            raise ImportError('ONNX needs onnx: pip install "isrlearn[onnx]"') from None
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, operator: str, inputs: list[str], name: str, **attributes: int) -> str:
        """A node with one output."""
        node = self.onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self.nodes.append(node)
        return name

    def gemm(self, X: str, coef: NDArray, intercept: NDArray, name: str = "column") -> str:
        """``X @ coef.T + intercept``."""
        weight = self.constant(f"{name}_weight", coef.astype(self.dtype))
        bias = self.constant(f"{name}_bias", intercept.astype(self.dtype))
        return self.add("Gemm", [X, weight, bias], name, transB=1)

    def constant(self, name: str, array: NDArray) -> str:
        """A constant array."""
        contiguous = np.ascontiguousarray(array)
        self.constants.append(self.onnx.numpy_helper.from_array(contiguous, name))
        return name

    def output(self, name: str, dtype: np.dtype, shape: list[str | int]) -> None:
        """Declare an output of the graph."""
        self.outputs.append(self._value(name, dtype, shape))

    def _value(self, name: str, dtype: np.dtype, shape: list[str | int]) -> Any:
        helper = self.onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        return helper.make_tensor_value_info(name, kind, shape)

    def model(self, n_features: int, notes: Mapping[str, str]) -> Any:
        """The checked model."""
        helper = self.onnx.helper
        X = self._value("X", self.dtype, ["rows", n_features])
        graph = helper.make_graph(self.nodes, "isrlearn", [X], self.outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR)
        model.producer_name = "isrlearn"
        helper.set_model_props(model, dict(notes))
        self.onnx.checker.check_model(model)
        return model
