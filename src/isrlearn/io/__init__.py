"""Files: tables of features, model files, exports."""

from isrlearn.io._errors import ModelFileError, TableError
from isrlearn.io.tables import Table, read_table

__all__ = [
    "ModelFileError",
    "Table",
    "TableError",
    "read_table",
]
