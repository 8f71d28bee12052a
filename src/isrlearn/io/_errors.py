"""The error of bad model files."""

from __future__ import annotations


class ModelFileError(ValueError):
    r"""A model file that is damaged, hostile, or of another kind or version.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.io import ModelFileError, load
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"\x80\x04N.")
    ...     file.flush()
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError as error:
    ...         print(str(error).partition(": ")[2])
    this is a pickle, which could run any code: nothing was loaded
    """
