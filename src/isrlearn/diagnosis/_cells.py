"""Which cells there are, how big they are, and which of them can be compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.moments import Moments
from isrlearn.core.rank import mean_rank
from isrlearn.diagnosis._value import label

#: Rows below which a cell is called small: the standard error of its mean is then more than
#: 0.3 standard deviations along every direction.
SMALL = 10


class Cell(NamedTuple):
    """A class in an environment and its number of rows; the class is None for a regression.

    Examples
    --------
    >>> Cell("waterbird", "land", 56).n
    56
    """

    label: Any
    environment: Any
    n: int


@dataclass(frozen=True)
class Cells:
    """Rows of every class in every environment, and which of them are compared.

    Parameters
    ----------
    classes, environments : tuple
        Their names; a regression has the one class None.
    count : tuple of tuple of int
        Rows of each class (outer) in each environment (inner).
    unlabelled : tuple of int
        Rows of each class whose environment is unknown.
    empty, small : tuple of Cell
        Cells without rows, and with fewer than ten.
    single_class : tuple of Cell
        Environments in which one class alone is seen, with that class.
    compared_classes, compared_environments : tuple
        What the diagnosis compares: every class in every environment where no cell is empty.
        Fewer than two environments if nothing can be.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core import Moments
    >>> y, e = np.array([0, 0, 1, 1]), np.array(["land", "sea", "land", "land"])
    >>> cells = Cells.of(cell_moments(np.eye(4), y, e))
    >>> cells.empty, cells.single_class
    ((Cell(label=1, environment='sea', n=0),), (Cell(label=0, environment='sea', n=1),))
    """

    classes: tuple[Any, ...]
    environments: tuple[Any, ...]
    count: tuple[tuple[int, ...], ...]  # (K, E)
    unlabelled: tuple[int, ...]  # (K,)
    empty: tuple[Cell, ...]
    small: tuple[Cell, ...]
    single_class: tuple[Cell, ...]
    compared_classes: tuple[Any, ...]
    compared_environments: tuple[Any, ...]

    @classmethod
    def of(cls, moments: Moments, *, regression: bool = False, level: float = 0.01) -> Cells:
        """Cells of moments with a pooled scatter; the comparison that shows most is kept."""
        count = moments.count
        K, E = count.shape
        classes = (None,) if regression else tuple(moments.classes.tolist())
        names = tuple(moments.environments.tolist())
        every = [Cell(classes[k], names[e], int(count[k, e])) for k in range(K) for e in range(E)]
        alone = [e for e in range(E) if K > 1 and np.count_nonzero(count[:, e]) == 1]
        lone = [(int(np.flatnonzero(count[:, e])[0]), e) for e in alone]
        other = moments.unlabelled
        picked, kept = _comparison(moments, level)
        return cls(
            classes=classes,
            environments=names,
            count=tuple(tuple(int(n) for n in row) for row in count),
            unlabelled=(0,) * K if other is None else tuple(int(n) for n in other.count[:, 0]),
            empty=tuple(c for c in every if c.n == 0),
            small=tuple(c for c in every if 0 < c.n < SMALL),
            single_class=tuple(Cell(classes[k], names[e], int(count[k, e])) for k, e in lone),
            compared_classes=tuple(classes[k] for k in picked),
            compared_environments=tuple(names[e] for e in kept),
        )

    @property
    def n_labelled(self) -> int:
        """Rows with a known environment."""
        return sum(sum(row) for row in self.count)

    @property
    def comparable(self) -> bool:
        """Whether some class is seen in two environments or more."""
        return len(self.compared_environments) > 1

    @property
    def left_out(self) -> tuple[Any, ...]:
        """Environments that are not compared: some class that is compared is not seen there."""
        return tuple(e for e in self.environments if e not in self.compared_environments)

    @property
    def condition_on(self) -> Any:
        """The one class that is compared where others cannot be; else None."""
        few = len(self.compared_classes) < len(self.classes)
        return label(self.compared_classes[0]) if few and self.compared_classes else None

    def smallest(self, classes: tuple[Any, ...] | None = None) -> Cell:
        """The compared cell with the fewest rows."""
        cells = [
            Cell(k, e, n)
            for k, row in zip(self.classes, self.count, strict=True)
            for e, n in zip(self.environments, row, strict=True)
            if k in (self.compared_classes if classes is None else classes)
            and e in self.compared_environments
        ]
        return min(cells, key=lambda cell: cell.n)


def _comparison(moments: Moments, level: float) -> tuple[NDArray, NDArray]:
    """Positions of the classes and environments to compare: a block without empty cells.

    Estimators compare all classes or one. Of the blocks they could be given, the one whose means
    move along most dimensions; of equals, the one with all classes, then with most rows.
    """
    count = moments.count
    K = len(count)
    everything = np.arange(K)
    blocks = [(everything, np.flatnonzero(count.all(axis=0)))]
    if not count.all():
        blocks += [(np.array([k]), np.flatnonzero(count[k])) for k in range(K) if K > 1]
    blocks = [(k, e) for k, e in blocks if len(e) > 1]
    if not blocks:
        return everything[:0], np.arange(0)
    if len(blocks) == 1:
        return blocks[0]

    def worth(block: tuple[NDArray, NDArray]) -> tuple[float, ...]:
        k, e = block
        masked = np.zeros_like(count)
        masked[np.ix_(k, e)] = count[np.ix_(k, e)]
        part = replace(moments, count=masked, unlabelled=None)
        # All the rows tell of the covariance, whichever means are compared.
        part = replace(part, scatter=moments.within() * (part.dof / moments.dof))
        return mean_rank(part, level=level).rank, len(k), masked.sum()

    return max(blocks, key=worth)
