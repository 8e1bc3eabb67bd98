"""The compiled inner loops of the interior-point solver, as the rest of it calls them.

The loops themselves are C++ (``src/core``, built as ``forewise._core``): a context's whole path
runs there on scratch memory of its own, with the interpreter's lock released, and no way to touch
a neighbour. Here is what goes in and what comes out:

    arrays     a program's blocks
    points     points of a whole batch
    batch      solutions and adjoints of all contexts, on as many threads as torch uses
    path       how a path ended
    evidence   the optimality conditions, from raw data and by itself

May import from forewise: nothing but problems.
"""
