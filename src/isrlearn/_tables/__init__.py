"""Tables of features in files, which estimators read too; users find them in `isrlearn.io`."""

from isrlearn._tables._errors import TableError
from isrlearn._tables._table import Table, check_numbers, is_vector, open_table, read_table

__all__ = ["Table", "TableError", "check_numbers", "is_vector", "open_table", "read_table"]
