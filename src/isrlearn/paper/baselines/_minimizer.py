"""Baselines that minimise an objective, as published or converged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from isrlearn.paper.baselines import _solve
from isrlearn.paper.baselines._estimator import LinearBaseline
from isrlearn.paper.baselines._objectives import Objective
from isrlearn.paper.baselines._optimizers import Gradient
from isrlearn.paper.baselines._risks import Risk
from isrlearn.paper.baselines._solve import Shares, Stage
from isrlearn.validation import check_between, check_choice

#: Parts of a penalty that lead to the whole of it. With none, the minimum is easy to find; with
#: all of it at once, a search from zero weights gets stuck beside them.
_ANNEALING = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)


class Minimizer(LinearBaseline):
    """A method that minimises an objective."""

    optimizer: str
    tol: float

    @abstractmethod
    def _objective(self, shares: Shares) -> Objective:
        """What is minimised, given each environment's share of the weight."""

    def _stages(self, shares: Shares) -> Iterable[Stage]:
        """The objectives that the converged form minimises in turn; the last is the one meant."""
        return [Stage(self._objective(shares))]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("optimizer", self.optimizer, ("converged", "published"))
        check_between("tol", self.tol, 0.0, np.inf)

    def _weights(self, problem: _solve.Problem) -> tuple[NDArray[np.float64], int]:
        if self.optimizer == "published":
            W = _solve.published(
                problem,
                self._gradient,
                learning_rate=self.learning_rate,
                weight_decay=self.weight_decay,
                n_steps=self.max_iter,
                random_state=self.random_state,
            )
            return W, self.max_iter
        *_, last = self._minima(problem, self._stages)
        return last

    def _gradient(self, risks: Sequence[Risk], shares: Shares) -> Gradient:
        """The function that Adam follows: the gradient (p, C) at weights (p, C)."""
        objective = self._objective(shares)
        return lambda W: objective.gradient([risk.at(W) for risk in risks])

    def _minima(
        self, problem: _solve.Problem, stages: Callable[[Shares], Iterable[Stage]]
    ) -> Iterator[tuple[NDArray[np.float64], int]]:
        """Weights and number of iterations at the minimum of each stage."""
        return _solve.converged(
            problem, stages, weight_decay=self.weight_decay, tol=self.tol, max_iter=self.max_iter
        )


class Penalized(Minimizer):
    """A method that adds a penalty to the mean of the environments' risks."""

    penalty: float

    @abstractmethod
    def _penalized(self, penalty: float, part: float) -> Objective:
        """The objective, divided by the weight of the mean risk, with a part of the penalty."""

    def _objective(self, shares: Shares) -> Objective:
        return self._penalized(self.penalty, 1.0)

    def _stages(self, shares: Shares) -> Iterable[Stage]:
        yield from (Stage(self._penalized(self.penalty, part), False) for part in _ANNEALING)
        yield Stage(self._penalized(self.penalty, 1.0))

    def fit_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        penalties: Sequence[float],
        *,
        environments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Estimators fitted with each of several penalties, for little more than one fit's time.

        From the smallest penalty to the largest, each converged fit starts from the one before.
        Where the objective has several minima, a fit can differ from that of ``fit``.

        Parameters
        ----------
        X, y, environments, sample_weight
            As for ``fit``.
        penalties : sequence of float
            The values of ``penalty``.

        Returns
        -------
        list of estimators
            One for each penalty, in the order given.
        """
        check_choice("optimizer of fit_path", self.optimizer, ("converged",))
        models = [clone(self).set_params(penalty=penalty) for penalty in penalties]
        for model in models:
            model._check_parameters()
        order = sorted(range(len(models)), key=lambda i: models[i].penalty)
        first = models[order[0]]
        problem = first._problem(X, y, environments, sample_weight)

        def stages(shares: Shares) -> Iterator[Stage]:
            yield from first._stages(shares)
            yield from (Stage(models[i]._penalized(models[i].penalty, 1.0)) for i in order[1:])

        minima = list(self._minima(problem, stages))[-len(order) :]
        fitted = [copy(first) for _ in models]
        for i, (W, n_iter) in zip(order, minima, strict=True):
            fitted[i].penalty, fitted[i].n_iter_ = models[i].penalty, n_iter
            fitted[i]._store(W)
        return fitted
