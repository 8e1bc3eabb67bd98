"""Tables on disk: CSV of any dialect, Parquet and Excel in; the same out, whole or not at all.

`dialect` finds out how a CSV is written, `reading` reads a table whole or in pieces, `writing`
writes one piece by piece under a temporary name. What cells mean is decided later, by `validation`:
cells of a CSV are text. Rows are labelled with their numbers in the file, the header being row 1,
so that any message about a row is about the row a spreadsheet shows.
"""

from forewise.tables.reading import chunks, read
from forewise.tables.writing import Writer, require_writable, write

__all__ = ["Writer", "chunks", "read", "require_writable", "write"]
