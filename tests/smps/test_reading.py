"""What files say, against HiGHS's reading of the core and against optima found by hand."""

from __future__ import annotations

import pytest

import forewise as fw
from forewise.exceptions import InvalidInputError, MissingDataError
from tests.smps.files import (
    CORE,
    STOCH,
    TIME,
    core_optimum,
    core_scenario,
    optimum,
    put,
    read,
    with_stoch,
)

# The problem of Louveaux and Smeers: investments in four plants, three modes, one random demand.
PLANTS, MODES = range(4), range(3)
LANDS_CORE = "\n".join(
    [
        "NAME LandS",
        "ROWS",
        *(" N OBJ", " G CAPMIN", " L BUDGET"),
        *(f" L OP{i}" for i in PLANTS),
        *(f" G DEM{j}" for j in MODES),
        "COLUMNS",
        *(
            f" X{i} OBJ {cost}\n X{i} CAPMIN 1 BUDGET {cost}\n X{i} OP{i} -1"
            for i, cost in enumerate((10, 7, 16, 6))
        ),
        *(
            f" Y{i}{j} OBJ {running * hours / 10} OP{i} 1\n Y{i}{j} DEM{j} 1"
            for i, running in enumerate((40, 45, 32, 55))
            for j, hours in enumerate((10, 6, 1))
        ),
        "RHS",
        *(" RHS CAPMIN 12 BUDGET 120", " RHS DEM0 5 DEM1 3", " RHS DEM2 2"),
        "ENDATA\n",
    ]
)
LANDS_TIME = "TIME LandS\nPERIODS\n X0 OBJ T1\n Y00 OP0 T2\nENDATA\n"
LANDS_STOCH = with_stoch(" RHS DEM0 3 0.3\n RHS DEM0 5 0.4\n RHS DEM0 7 0.3")


def test_the_classic_power_plants(tmp_path):
    program = read(tmp_path, core=LANDS_CORE, time=LANDS_TIME, stoch=LANDS_STOCH)
    assert optimum(program) == pytest.approx(381.853333, abs=1e-5)
    assert program.n_scenarios == 3


def test_tiny_program_by_hand(tmp_path):
    """min 2x + 10 + E[5.5 y], y ≥ d − x, x ≤ 8: every unit up to 6 is needed half of the time."""
    program = read(tmp_path)
    assert program.decision_names == ("X",)
    assert program.recourse_names == ("Y", "V")
    assert program.second_stage.tolist() == [False, True, True]
    # From 6 on a unit costs 2 and saves 5.5 / 4.
    assert optimum(program) == pytest.approx(2 * 6 + 10 + 0.25 * 5.5 * 4)
    solution = fw.solve_program(program.program(program.scenarios()))
    assert dict(zip(program.decision_names, solution.decision[0].tolist(), strict=True)) == {
        "X": pytest.approx(6, abs=1e-6)
    }
    assert program.row_names == {"G": ("CAP",), "E": (), "W": ("DEM",), "V": ("BAL",)}
    # Demand over 6 costs 5.5, in a quarter of all cases.
    assert solution.duals.scenario_inequality[0, 2].item() == pytest.approx(5.5 / 4, abs=1e-6)


FEATURES = {
    "plain": "",
    "ranges": "RANGES\n RNG CAP 4 DEM 3\n RNG BAL 2",
    "range of an equality below": "RANGES\n RNG BAL -1.5",
    "upper": "BOUNDS\n UP BND X 3",
    "without the set's name": "BOUNDS\n UP X 3\n LO Y 1",
    "lower": "BOUNDS\n LO BND X 7\n LO BND V 2",
    "fixed": "BOUNDS\n FX BND X 4.5\n FX BND V 1D0",
    "negative": "BOUNDS\n FR BND Y\n LO BND V -3\n UP BND V -1",
    "minus infinity": "BOUNDS\n MI BND X\n UP BND X 2\n LO BND V 0",
    "plus infinity": "BOUNDS\n PL BND X\n UP BND Y 1e30",
    "free": "BOUNDS\n FR BND V\n LO BND Y -2",
}


@pytest.mark.parametrize("feature", FEATURES)
def test_core_agrees_with_highs(feature, tmp_path):
    core = CORE.replace("ENDATA", FEATURES[feature] + "\nENDATA")
    program = read(tmp_path, core=core)
    wanted = core_optimum(tmp_path / "tiny.cor", tmp_path)
    # HiGHS's constant is that of the file.
    assert optimum(program, core_scenario(program)) == pytest.approx(wanted, rel=1e-9)


def test_fixed_layout_with_blanks_in_names(tmp_path):
    def card(code="", one="", two="", first="", three="", second=""):
        return f" {code:<2} {one:<8}  {two:<8}  {first:>12}   {three:<8}  {second:>12}".rstrip()

    core = [
        *("NAME          blanks", "ROWS", card("N", "THE COST"), card("G", "THE DEM")),
        *("COLUMNS", card("", "X 1", "THE COST", "2", "THE DEM", "1")),
        *(card("", "Y 1", "THE COST", "5", "THE DEM", "1"), "RHS"),
        *(card("", "RHS", "THE DEM", "5", "THE COST", "-1"), "ENDATA", ""),
    ]
    time = ["TIME", "PERIODS", card("", "X 1", "THE DEM", "", "ONE")]
    time += [card("", "Y 1", "THE DEM", "", "TWO"), "ENDATA", ""]
    stoch = ["STOCH", "INDEP         DISCRETE"]
    stoch += [card("", "RHS", "THE DEM", str(d), "TWO", "0.5") for d in (4, 6)]
    files = {"core": core, "time": time, "stoch": [*stoch, "ENDATA", ""]}
    program = read(tmp_path, **{name: "\n".join(lines) for name, lines in files.items()})
    assert program.decision_names == ("X 1",)
    assert optimum(program) == pytest.approx(1 + 2 * 6)
    with pytest.raises(InvalidInputError, match="blanks"):
        fw.smps.write(program, tmp_path / "out")


def test_comments_tabs_carriage_returns_and_other_encodings(tmp_path):
    put(tmp_path, core="* caf\xe9\n" + CORE.replace(" X DEM 1", "*ignored\n\tX\tDEM\t1"))
    path = tmp_path / "tiny.cor"
    path.write_bytes(path.read_text().replace("\n", "\r\n").encode("latin-1"))
    assert optimum(fw.smps.read(tmp_path)) == pytest.approx(27.5)


def test_explicit_periods_in_any_order(tmp_path):
    time = "TIME t\nPERIODS EXPLICIT\n ONE\n TWO\nROWS\n CAP ONE\nCOLUMNS\n X TWO\n Y ONE\n V ONE\n"
    program = read(tmp_path, time=time + "ENDATA\n")
    assert program.decision_names == ("Y", "V")
    assert program.recourse_names == ("X",)
    # y is bought before the demand is seen: 5.5 a unit, x costs 2 and goes up to 8.
    assert optimum(program) == pytest.approx(10 + 2 * 5.5 + 2 * (0.25 * 1 + 0.5 * 4 + 0.25 * 8))


def test_rows_of_the_second_stage_are_found_whatever_the_time_file_says(tmp_path):
    """CAP is random: it becomes a row of every scenario, though it touches X alone."""
    program = read(tmp_path, stoch=with_stoch(" RHS CAP 8 0.5\n RHS CAP 2 0.5"))
    assert program.second_stage.tolist() == [True, True, True]
    assert optimum(program) == pytest.approx(10 + 2 * 2 + 5.5 * 3)


ELEMENTS = {
    # In each, the second value is the core's.
    "entry": (" X DEM 0.5 0.5\n X DEM 1 0.5", "entry DEM of X"),
    "new entry": (" V DEM 0.5 0.5\n V DEM 0 0.5", "entry DEM of V"),
    "cost": (" Y COST 7 0.5\n Y COST 5 0.5", "cost Y"),
    "first cost": (" X COST 1 0.5\n X COST 2 0.5", "cost X"),
    "constant": (" RHS COST 10 0.5\n RHS COST -10 0.5", "right-hand side of the cost"),
    "upper": (" UP BND Y 1 0.5\n UP BND Y 100 0.5", "upper bound Y"),
    "lower": (" LO BND Y 2 SECOND 0.5\n LO BND Y 0 SECOND 0.5", "lower bound Y"),
    "fixed": (" FX BND Y 4 0.5\n FX BND Y 0 0.5", "fixed value Y"),
    "first upper": (" UP BND X 3 0.5\n UP BND X 100 0.5", "upper bound X"),
}
# min 2x + E[5.5 y], y ≥ 5 − x, x ≤ 8, without the constant 10.
BY_HAND = {
    "entry": 2 * 5 + 0.5 * 5.5 * 2.5,
    "new entry": 10,
    "cost": 10,
    "first cost": 7.5,
    "constant": 2 * 5 - 10,
    "upper": 10,
    "lower": 2 * 5 + 0.5 * 5.5 * 2,
    "fixed": 2 * 5 + 0.5 * 5.5 * 4,
    "first upper": 2 * 3 + 5.5 * 2,
}


ERRORS = {
    "no section": ("core", ("ROWS\n", ""), "line 2: expected a section before"),
    "unknown section": ("core", ("RHS\n", "QMATRIX\n"), "line 13: expected a section NAME"),
    "row": ("core", (" L CAP", " L CAP 3"), "line 4: expected one of N, L, G, E"),
    "row twice": ("core", (" L CAP", " L DEM\n L CAP"), "line 6: the row 'DEM' is here for"),
    "unknown row": ("core", ("CAP 1", "CUP 1"), "line 8: expected a row of ROWS.*'CUP'"),
    "twice": ("core", ("DEM 1\n", "DEM 1 CAP 2\n"), "line 9: column 'X' in row 'CAP' is here"),
    "cost twice": ("core", (" X DEM 1", " X DEM 1 COST 3"), "line 9: the cost of column 'X'"),
    "side twice": ("core", (" R DEM 5", " R DEM 5 CAP 3"), "line 15: row 'CAP' of RHS is here"),
    "nan": ("core", ("CAP 8", "CAP nan"), "line 14: expected a finite number.*'nan'"),
    "infinite": ("core", ("CAP 1", "CAP 1e400"), "line 8: expected a number below 1e"),
    "underscore": ("core", ("CAP 1", "CAP 1_0"), "line 8: expected a finite number.*'1_0'"),
    "no number": ("core", (" X DEM 1", " X DEM"), "line 9: expected a column, a row and"),
    "impossible": ("core", ("CAP 8", "CAP -1e30"), "line 14: the row 'CAP' cannot hold"),
    "two sides": ("core", (" R DEM 5", " Q DEM 5"), "line 15: RHS has two sets, 'R' and 'Q'"),
    "marker": ("core", (" Y BAL", " M 'MARKER' 'INTORG'\n Y BAL"), "line 11: .*integer variables"),
    "binary": ("core", ("ENDATA", "BOUNDS\n BV B X\nENDATA"), "line 17: .*BV.*integer variables"),
    "bound": ("core", ("ENDATA", "BOUNDS\n XX B X 1\nENDATA"), "line 17: expected a bound: UP"),
    "of": ("core", ("ENDATA", "BOUNDS\n UP B W 1\nENDATA"), "line 17: expected a column.*'W'"),
    "twice up": ("core", ("ENDATA", "BOUNDS\n UP B X 1\n UP B X 2\nENDATA"), "18: an upper bound"),
    "crossed": ("core", ("ENDATA", "BOUNDS\n LO B X 3\n UP B X 2\nENDATA"), "18: .*nothing betw"),
    "below 0": ("core", ("ENDATA", "BOUNDS\n UP B X -2\nENDATA"), "17: .*say MI, or LO"),
    "maximise": ("core", ("ROWS", "OBJSENSE\n MAX\nROWS"), "line 3: costs are minimised"),
    "cut short": ("core", ("ENDATA", ""), "tiny.cor ends without ENDATA"),
    "no cost": ("core", (" N COST\n", " L COST\n"), "tiny.cor: the program has no cost"),
    "no columns": ("core", (CORE[CORE.index(" X COST") : CORE.index("RHS")], ""), "no columns"),
    "three stages": ("time", ("ENDATA", " V BAL THIRD\nENDATA"), "more than two stages"),
    "one stage": ("time", (" Y DEM SECOND\n", ""), r"two periods, but found 1 \(FIRST\)"),
    "stages": ("time", (" X CAP", " V CAP"), "columns of FIRST must stand before 'Y'"),
    "column": ("time", ("Y DEM", "Z DEM"), "tiny.tim, line 4: expected a column.*'Z'"),
    "time row": ("time", ("Y DEM", "Y DUM"), "tiny.tim, line 4: expected a row.*'DUM'"),
    "period twice": ("time", ("SECOND", "FIRST"), "line 4: the period 'FIRST' is here for"),
    "fields": ("time", ("Y DEM SECOND", "Y DEM"), "line 4: expected a column, a row and the name"),
    "explicit": ("time", ("PERIODS", "PERIODS EXPLICIT"), "the column 'X' has no period"),
    "sum": ("stoch", ("6 SECOND 0.5", "6 0.3"), r"line 3: the probabilities .* sum to 0.8"),
    "probability": ("stoch", ("10 0.25", "10 -0.25"), "line 5: expected a probability from 0"),
    "no probability": ("stoch", ("10 0.25", "10"), "line 5: .*probability, but found 'RHS DEM 10'"),
    "random nan": ("stoch", ("10 0.25", "NaN 0.25"), "line 5: expected a finite number"),
    "random row": ("stoch", ("DEM 10", "DUM 10"), "line 5: expected a row.*'DUM'"),
    "random column": ("stoch", ("RHS DEM 10", "Z DEM 10"), "line 5: .*column.*or RHS.*'Z'"),
    "nothing random": ("stoch", (STOCH[STOCH.index(" RHS") : -7], ""), "nothing that it is random"),
    "density": ("stoch", ("DISCRETE", "CAUCHY"), "line 2: INDEP may be DISCRETE, UNIFORM.*CAUCHY"),
    "nodes": ("stoch", ("INDEP", "NODES"), "line 2: expected a section STOCH, INDEP"),
    "no block": ("stoch", ("INDEP", "BLOCKS"), "line 3: expected a line BL"),
    "no upper bound": (
        "stoch",
        (STOCH[STOCH.index("INDEP") : -7], "INDEP DISCRETE ADD\n UP BND Y 1 1\n"),
        "line 3: ADD needs a finite upper bound Y in the core file",
    ),
    "data first": ("stoch", ("INDEP DISCRETE\n", ""), "line 2: expected a section INDEP"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_line_and_what_was_expected(case, tmp_path):
    file, (old, new), message = ERRORS[case]
    text = {"core": CORE, "time": TIME, "stoch": STOCH}[file]
    assert old in text
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path, **{file: text.replace(old, new, 1)})


def test_a_random_right_side_of_a_row_that_bounds_nothing(tmp_path):
    """In the core it may be left infinite; as a free row it would be lost without a word."""
    core = CORE.replace("CAP 8", "CAP 1e30")
    assert optimum(read(tmp_path, core=core)) == pytest.approx(27.5)
    with pytest.raises(InvalidInputError, match="line 3: the right-hand side of row 'CAP'"):
        read(tmp_path, core=core, stoch=with_stoch(" RHS CAP 8 0.5\n RHS CAP 2 0.5"))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MissingDataError, match="is none"):
        fw.smps.read(tmp_path / "nowhere")
    put(tmp_path)
    (tmp_path / "second.cor").write_text(CORE)
    with pytest.raises(InvalidInputError, match=r"one core file.*second\.cor, tiny\.cor"):
        fw.smps.read(tmp_path)
    paths = [tmp_path / f"tiny.{ending}" for ending in ("cor", "tim", "sto")]
    assert fw.smps.read(*paths).n_scenarios == 3
    with pytest.raises(InvalidInputError, match="belong together"):
        fw.smps.read(paths[0], paths[1])
    paths[1].unlink()
    (tmp_path / "second.cor").unlink()
    with pytest.raises(MissingDataError, match=r"one time file.*none"):
        fw.smps.read(tmp_path)


@pytest.mark.parametrize("kind", ELEMENTS)
def test_anything_may_be_random(kind, tmp_path):
    lines, name = ELEMENTS[kind]
    program = read(tmp_path, stoch=with_stoch(lines))
    assert [str(element) for element in program.elements] == [name]
    assert optimum(program) == pytest.approx(10 + BY_HAND[kind], abs=1e-6)
