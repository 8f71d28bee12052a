
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression


@dataclass
class LogisticFit:
    coef: object; intercept: object; converged: bool=True; n_passes:int=1; gradient_norm: float=0.0
def fit_logistic(X, codes, *, n_classes, penalty, coordinates=None, weight=None, start=None):
    Z=coordinates(np.asarray(X[:]))
    m=LogisticRegression(C=1/max(penalty,1e-12),solver="newton-cholesky",tol=1e-10,max_iter=500).fit(Z,codes,sample_weight=weight)
    return LogisticFit(m.coef_,m.intercept_)
def project(X, components, center):
    return (np.asarray(X[:])-center.astype(X.dtype))@components.astype(X.dtype)
def row_components(X,p,*,center,weight=None):
    Z=np.asarray(X[:])-center
    if weight is not None: Z=Z*np.sqrt(weight)[:,None]
    return np.linalg.svd(Z,full_matrices=False)[2][:p].T
def column_squares(X, centred, weight):
    Z=centred(np.asarray(X[:])).astype(float)
    return (Z**2 if weight is None else Z**2*weight[:,None]).sum(0)
