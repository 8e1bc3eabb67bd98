"""Policies and checkpoints on disk: one folder with a readable header and one file of arrays.

    folder/
      header.json                          what is stored, as indented JSON; arrays by reference
      arrays-<16 hex digits>.safetensors   the arrays, in a file named after its own SHA-256

* No code comes from a folder: JSON and safetensors hold data only. Checksums of both files find
  damage, not forgery. Sizes are checked before reading.
* Writes are atomic: both files are written under a temporary name, flushed and renamed, the header
  last. A random number in each arrays file makes its name unique, so that writers need no
  lock, and a reader whose arrays were just replaced reads the header again.
* A folder is written to only if it is empty or has a header of forewise, and only files with
  forewise's names are removed from it.

To store one more kind of object, choose its `kind` and a `version`; raise the version when the
meaning of the content changes.
"""

from forewise.storage.folders import read_folder, write_file, write_folder
from forewise.storage.trees import Tree

__all__ = ["Tree", "read_folder", "write_file", "write_folder"]
