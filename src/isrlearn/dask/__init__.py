"""Fitting on a cluster: Dask arrays, Dask frames and lists of files."""

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ImportError('isrlearn.dask needs Dask: pip install "isrlearn[dask]"')

from isrlearn.dask._fit import fit, predict, predict_proba
from isrlearn.dask.cluster import client_of, local_cluster

__all__ = ["client_of", "fit", "local_cluster", "predict", "predict_proba"]
