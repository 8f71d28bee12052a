"""Files: tables of features, model files, exports."""

from isrlearn.io._state import TRUSTED_TYPES
from isrlearn.io.errors import ModelFileError, OutputError, TableError
from isrlearn.io.export import export_model
from isrlearn.io.features import load_features, save_features
from isrlearn.io.files import write_columns, write_predictions
from isrlearn.io.model import ModelFile, load, read_model, save
from isrlearn.io.tables import Table, read_table

__all__ = [
    "TRUSTED_TYPES",
    "ModelFile",
    "ModelFileError",
    "OutputError",
    "Table",
    "TableError",
    "export_model",
    "load",
    "load_features",
    "read_model",
    "read_table",
    "save",
    "save_features",
    "write_columns",
    "write_predictions",
]
