"""Trees as arrays: which leaf a context falls into.

The nodes of all trees stand one behind the other. A node compares one column with a threshold; its
children are given by number, and are -1 in a leaf. May import: nothing of forewise.
"""

from __future__ import annotations

import numpy as np


def find_leaves(
    columns: np.ndarray,
    roots: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
) -> np.ndarray:
    """The leaf that each context falls into, in each tree: (n_contexts, n_trees).

    Parameters
    ----------
    columns : array (n_contexts, n_features)
        Contexts, in the precision in which they are to be compared.
    roots : array (n_trees,)
        First node of each tree.
    left, right, feature, threshold : arrays (n_nodes,)
        A context goes left if its column is at most the threshold.
    """
    node = np.broadcast_to(roots, (len(columns), len(roots))).copy()
    context, tree = np.indices(node.shape).reshape(2, -1)
    while len(context):
        at = node[context, tree]
        inner = left[at] >= 0
        context, tree, at = context[inner], tree[inner], at[inner]
        goes_left = columns[context, feature[at]] <= threshold[at]
        node[context, tree] = np.where(goes_left, left[at], right[at])
    return node


def numbered(children: list[np.ndarray], roots: np.ndarray) -> np.ndarray:
    """Children by number among all nodes, from numbers within their tree; -1 stays."""
    return np.concatenate(
        [np.where(child < 0, -1, child + root) for child, root in zip(children, roots, strict=True)]
    )
