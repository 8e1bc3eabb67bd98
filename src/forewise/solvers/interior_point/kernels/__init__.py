"""Compiled inner loops of the interior-point solver, one context at a time.

A context's whole path runs in machine code on scratch memory that fits the processor's cache:
no tensor operation, no allocation, and no way to touch a neighbour. Scenarios stand in the last
dimension of every array, so that what is done for one of them is a vector instruction for
several. In the order in which they import each other:

    stale_code        machine code of other sources is not used
    compiling         the decorators
    views             looking at memory as an array
    arrays            a program's blocks
    structure         which entries of them are there at all
    algebra           small dense linear algebra; `scenario_algebra` for all scenarios at once
    workspace         the scratch memory of one context
    products          the program's matrices times points
    simple_recourse   scenarios' variables that take one division each, eliminated
    linking_recourse  those that hold a scenario together, and equalities, eliminated
    arrow             factor and solutions of the arrow-shaped Newton system
    loading           how a program gets into the workspace, scaled
    measuring         how far a point is from the solution, or along a ray
    stepping          where a path starts, and one step along it
    path              the interior-point loop, and its way to a centre
    points            points of a whole batch
    batch             all contexts of a program, on as many threads as torch uses
    evidence          the optimality conditions, from raw data and by itself

May import from forewise: nothing but problems.
"""
