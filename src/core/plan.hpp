// What is known of a batch before its first number is computed: patterns, roles, orders.
//
// All scenarios and contexts share one pattern, the union of their nonzeros. Kernels read a plan;
// `structure` and `elimination` make it, once for a batch.
#pragma once

#include <cstddef>
#include <vector>

namespace forewise {

using Indices = std::vector<int>;

// The nonzeros of a block, row by row.
struct Pattern {
    int rows = 0;
    const int* starts = nullptr;   // (rows + 1,)
    const int* columns = nullptr;  // (entries,) ascending in a row
    const int* places = nullptr;   // (entries,) where each stands in a scenario's part, −1: nowhere

    int entries() const { return rows ? starts[rows] : 0; }
};

// A supernode: neighbouring columns of the factor with the same rows below them. Its panel has one
// row per column (a triangle) and one per row below, w entries each.
struct Supernode {
    int first, width;  // positions of its columns
    int sign;          // of its pivots
    int below;         // rows below its columns,
    int rows;          // where they begin in `rows`,
    int linking;       // and how many of them, at the beginning, are variables
    int firsts;        // first-stage variables reached,
    int reach;         // and where they begin in `reach`
    int panel, reached;  // where its panels begin: of L, and of the rows of z
    int updates, last_update;  // where the updates of it begin and end
    int tree;                  // of linking variables, −1 if it is a row's
};

// A supernode's part in another one: rows from `from` on of the source, the first `columns` of which
// are columns of the target; `places` gives their rows in its panel, then those of z.
struct Update {
    int source, from, columns, places;
};

// Σ over pairs of entries goes to one place of a panel.
struct Target {
    int place, begin, end;
};

struct Pair {
    int a, b;
};

// Linking variables that hold together: those of one component of H. All of them reach the same
// first-stage variables when solved for, and so do all rows with them.
struct Tree {
    int firsts, reach;  // first-stage variables, and where they begin in `reach`
    int rows, last_row;  // in `tree_rows`
    int variables, last_variable;  // in `tree_variables`: those with a quadratic cost
};

// How a scenario's linking variables, equalities and kept inequalities are eliminated.
// Positions count the nodes in the order of their elimination.
struct Elimination {
    int nodes = 0;
    bool squares = false;  // whether S needs the trees' squares
    std::vector<Supernode> supernodes;
    Indices rows, reach;
    std::vector<Update> updates;
    Indices places;
    Indices position_of_linking, position_of_equality, position_of_kept;  // kept: (r,), −1 if not
    std::vector<Pair> kept;  // (row, position)
    Indices sign;  // of each position
    int entries = 0, reached_entries = 0;

    // Assembly of the panels.
    Indices diagonal;              // (nodes,) place of each position's pivot in its panel
    std::vector<Target> gram;      // W'κW: pairs of linking entries
    std::vector<Target> coupling;  // W'κT in the rows of z: pairs (linking entry, entry of T)
    std::vector<Pair> pairs;
    std::vector<Pair> curvature;          // (entry of `off`, place)
    std::vector<Pair> equal_V, equal_F;   // (entry, place), with the column's sign in `..._sign`
    std::vector<Pair> kept_W, kept_T;
    Indices equal_V_sign, equal_F_sign, kept_W_sign, kept_T_sign;

    std::vector<Tree> trees;
    Indices tree_rows, tree_variables;
    Indices solution;  // (nodes,) where a position's row of Y begins, in numbers of z
    int solution_entries = 0, widest_tree = 0;

    double work = 0.0;  // multiplications of one factorisation
};

// The structure of a batch. A recourse variable is *simple* if nothing but one row ties it to
// others: its curvature is its own, no equality has it, and all but one of the rows with it (its
// *bounds*) have nothing else. The others are *linking*. A row is *shared* if it has anything but
// one simple variable: rows of T, whatever they are, and rows with a linking variable.
struct Structure {
    Pattern G, E, P;     // P with its diagonal
    Pattern T, F, V;     // V's columns are linking variables' numbers
    Pattern W;           // linking entries only; columns are linking variables' numbers
    Pattern off;         // D's entries off the diagonal, all of them; linking variables' numbers
    Indices own;         // (r,) the simple variable of each row, −1 if it has none
    Indices own_place;   // (r,) where its coefficient stands in W
    Indices diagonal;    // (k,) where D's diagonal stands, −1: nowhere
    Indices simple, linking;  // variables
    Indices unshared;    // simple variables that no shared row has
    Indices bounds;      // rows that are not shared
    Indices shared;      // rows that are
    Indices leads;       // (r,) the first shared row that is the same but for its own variable and sign
    std::vector<Indices> memory;  // of the patterns

    bool is_linking() const { return !linking.empty() || V.rows > 0; }
};

struct Plan {
    Structure structure;
    Elimination elimination;
};

}  // namespace forewise
