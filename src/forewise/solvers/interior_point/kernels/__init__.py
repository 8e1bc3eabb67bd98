"""The compiled inner loops of the interior-point solver, as the rest of it calls them.

The loops themselves are C++ (``src/core``, built as ``forewise._core``): a context's whole path
runs there on scratch memory of its own, with the interpreter's lock released, and no way to touch
a neighbour. Here is what goes in and what comes out:

    arrays       a program's blocks, points of a whole batch, how a path ended
    batch        solutions and adjoints of all contexts, on as many threads as torch uses
    inspection   the optimality conditions from raw data, the structure of a batch
"""
