"""Fitting on a cluster: Dask arrays, Dask frames and lists of files."""

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ImportError('isrlearn.dask needs Dask: pip install "isrlearn[dask]"')

from isrlearn.dask._cluster import client_of, local_cluster
from isrlearn.dask._fit import fit
from isrlearn.dask._predict import predict, predict_proba

__all__ = ["client_of", "fit", "local_cluster", "predict", "predict_proba"]
