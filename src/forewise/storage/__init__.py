"""Policies and checkpoints on disk: one folder, with a readable header and one file of arrays.

    folder/
      header.json                          what is stored, as indented JSON; arrays by reference
      arrays-<16 hex digits>.safetensors   the arrays, in a file named after its own SHA-256

**Nothing that is read can run**: JSON and safetensors hold data only. The header has length and
SHA-256 of the arrays' file and a SHA-256 of itself, so a changed byte is noticed. That finds
damage, not forgery: whoever can write the folder chooses the numbers in it, but no more than
that. Sizes are checked before reading, so memory is in proportion to what lies on the disk.

**The old content or the new, never a mixture.** Both files are written under a temporary name,
flushed and renamed, the header last. A random number in each arrays' file makes its hash, and so
its name, unlike that of any other writing. Hence a writer may remove the arrays of the header it
replaced without asking who else is at work: no header to come will name them, and arrays that
another writer has renamed but not yet named in a header have a name of their own. What killed
or overtaken writers left behind is removed once it is an hour old. There is no lock to wait for
or to be left behind, and a reader whose arrays were just replaced reads the header again.

**Nothing of the user's is overwritten or deleted**: a folder is written to only if it is empty or
has a header of ours, and only files with our names are removed from it.

To store one more kind of object, choose its `kind` and a `version`, raise the version when the
meaning of its content changes, and let the reader accept the versions it understands.

`folders` has the two verbs. `trees`, `arrays` and `header` make and read what they store, `files`
and `ownership` touch the disk, `layout` has the names and `complaints` the words.
May import: exceptions.
"""

from forewise.storage.folders import read_folder, write_folder
from forewise.storage.trees import Tree

__all__ = ["Tree", "read_folder", "write_folder"]
