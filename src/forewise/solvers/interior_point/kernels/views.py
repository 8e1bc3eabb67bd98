"""Looking at a part of a buffer as an array, at no cost.

Slicing and reshaping check their arguments. In kernels that look at the workspace thousands of
times in a solve, those checks take as long as the arithmetic; this does the same without them.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


@intrinsic  # type: ignore[untyped-decorator]
def look(typing_context: Any, buffer: Any, start: Any, shape: Any) -> Any:
    """The array of a shape (a tuple) that begins at `start` of a contiguous 8-byte array."""
    view_type = types.Array(buffer.dtype, shape.count, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        sizes = cgutils.unpack_tuple(builder, arguments[2])
        itemsize = context.get_constant(types.intp, 8)
        strides = [itemsize]
        for size in reversed(sizes[1:]):
            strides.insert(0, builder.mul(strides[0], size))
        view = context.make_array(view_type)(context, builder)
        populate_array(
            view,
            data=builder.gep(source.data, [arguments[1]]),
            shape=sizes,
            strides=strides,
            itemsize=itemsize,
            meminfo=None,  # the buffer outlives every look at it
        )
        return view._getvalue()

    return view_type(buffer, types.intp, shape), generate
