"""The Bradley-Terry fit with seat effects over aggregated pair cells.

The model is logit P(i beats j) = theta_i - theta_j + beta_seat(i) - beta_seat(j). The seat effects sum to 0
and live in the contrasts that the cells can tell from skill.

Invariant: a fit that says it converged is a maximum to 1e-10 in every parameter that the data fix.
It must not know of intervals, names or Elo.

Source: Bradley and Terry 1952; the seat term is a covariate, as the home advantage of Agresti 1990.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from cogeval.ratings.cells import PairCells, sums
from cogeval.ratings.table import FloatArray, IntArray

__all__ = ["Fit", "Model", "fit"]

TOLERANCE = 1e-10
MAX_STEPS = 200
STEP_CAP = 2.0
ROUNDING = 1e-16
"""A step that gains less than this share of the log likelihood is the last: its own error is its square."""

FARTHEST_MARGIN = 30.0
"""Log odds that only a likelihood without a maximum reaches."""

SEAT_RIDGE = 1e-7
"""Keeps the seat effects finite where they have no maximum; far below the weight of one game elsewhere."""

RELATIVE_RANK = 1e-9
"""Eigenvalues of the seats' information below this share of the largest count as 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A maximum of the likelihood.

    Args:
        theta: float [num_agents], log strengths; the mean is 0 without a prior, and wherever the phantom
            puts it with one.
        seat: float [num_seats], log advantage of each seat; sums to 0.
        parameters: float [num_agents + num_directions], what the maximum is over: theta, then the
            coordinates of the seat effects in the model's basis.
        information: float [num_parameters, num_parameters], minus the second derivative there.
        converged: the last step was below the tolerance, or its gain below rounding.
    """

    theta: FloatArray
    seat: FloatArray
    parameters: FloatArray
    information: FloatArray
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The likelihood over fixed cells; games and wins are arguments, so that a jackknife can vary them.

    Args:
        cells: who meets whom in which seats.
        prior_games: drawn pseudo-games of each agent against a phantom fixed at 0; 0 for none.
        seat_basis: float [num_seats, num_directions], orthonormal columns, each summing to 0: the seat
            contrasts that the cells can tell from skill. Computed when left out.
        seats: whether the model has a seat term at all.
    """

    cells: PairCells
    prior_games: float = 1.0
    seats: bool = True
    seat_basis: FloatArray = field(init=False)
    _codes: tuple[IntArray, ...] = field(init=False)

    def __post_init__(self) -> None:
        c, size, width = self.cells, self.cells.num_agents, self.cells.num_seats
        codes = (
            c.first * size + c.second,
            c.first * width + c.first_seat,
            c.second * width + c.second_seat,
            c.first * width + c.second_seat,
            c.second * width + c.first_seat,
            c.first_seat * width + c.second_seat,
        )
        object.__setattr__(self, "_codes", codes)
        empty = np.zeros((width, 0))
        object.__setattr__(self, "seat_basis", empty)
        if self.seats and width > 1:
            object.__setattr__(self, "seat_basis", self._identifiable_seats())

    @property
    def num_parameters(self) -> int:
        """Log strengths and seat directions together."""
        return self.cells.num_agents + int(self.seat_basis.shape[1])

    def seat_effects(self, parameters: FloatArray) -> FloatArray:
        """The seat effects that a parameter vector stands for: float [num_seats], summing to 0."""
        return np.asarray(self.seat_basis @ parameters[self.cells.num_agents :])

    def margins(self, parameters: FloatArray) -> FloatArray:
        """The log odds that each cell's first agent wins: float [num_cells]."""
        c, seat = self.cells, self.seat_effects(parameters)
        theta = parameters[: c.num_agents]
        return np.asarray(theta[c.first] - theta[c.second] + seat[c.first_seat] - seat[c.second_seat])

    def log_likelihood(self, parameters: FloatArray, games: FloatArray, wins: FloatArray) -> float:
        """Log likelihood with the prior and the ridge, up to a constant."""
        margins = self.margins(parameters)
        theta, turn = np.split(parameters, [self.cells.num_agents])
        value = wins @ margins - games @ np.logaddexp(0.0, margins)
        value += self.prior_games * (0.5 * theta.sum() - np.logaddexp(0.0, theta).sum())
        return float(value - 0.5 * SEAT_RIDGE * (turn @ turn))

    def derivatives(
        self, parameters: FloatArray, games: FloatArray, wins: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The gradient [num_parameters] and minus the second derivative [num_parameters, num_parameters]."""
        size = self.cells.num_agents
        chance = expit(self.margins(parameters))
        theta, turn = np.split(parameters, [size])
        pseudo = expit(theta)
        gradient = self.pull(wins - games * chance)
        gradient[:size] += self.prior_games * (0.5 - pseudo)
        gradient[size:] -= SEAT_RIDGE * turn
        information = self._curvature(games * chance * (1.0 - chance))
        index = np.arange(self.num_parameters)
        information[index[:size], index[:size]] += self.prior_games * pseudo * (1.0 - pseudo)
        information[index[size:], index[size:]] += SEAT_RIDGE
        return gradient, information

    def pull(self, residuals: FloatArray) -> FloatArray:
        """What residuals per cell (wins above expectation) pull each parameter by."""
        c, size, width = self.cells, self.cells.num_agents, self.cells.num_seats
        theta = sums(c.first, residuals, size) - sums(c.second, residuals, size)
        if not self.seat_basis.shape[1]:
            return theta
        seat = sums(c.first_seat, residuals, width) - sums(c.second_seat, residuals, width)
        return np.concatenate([theta, seat @ self.seat_basis])

    def is_finite(self, parameters: FloatArray) -> bool:
        """Whether these are a maximum and not a stage of a climb without end, as without a prior."""
        return bool(np.abs(self.margins(parameters)).max(initial=0.0) < FARTHEST_MARGIN)

    def gauge(self) -> FloatArray:
        """What to add to the information so that it has an inverse: 11'/A on theta without a prior, else 0.

        Without a prior the likelihood is flat along a shift of all thetas; this fixes their mean.
        """
        added = np.zeros((self.num_parameters, self.num_parameters))
        if self.prior_games == 0.0:
            added[: self.cells.num_agents, : self.cells.num_agents] = 1.0 / self.cells.num_agents
        return added

    def _curvature(self, weights: FloatArray) -> FloatArray:
        agents = self._laplacian(self._codes[0], weights, self.cells.num_agents)
        if not self.seat_basis.shape[1]:
            return agents
        cross, seats = self._seat_curvature(weights)
        cross = cross @ self.seat_basis
        return np.block([[agents, cross], [cross.T, self.seat_basis.T @ seats @ self.seat_basis]])

    def _seat_curvature(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        size, width = self.cells.num_agents, self.cells.num_seats
        parts = [sums(code, weights, size * width) for code in self._codes[1:5]]
        cross = (parts[0] + parts[1] - parts[2] - parts[3]).reshape(size, width)
        return cross, self._laplacian(self._codes[5], weights, width)

    @staticmethod
    def _laplacian(codes: IntArray, weights: FloatArray, size: int) -> FloatArray:
        met = sums(codes, weights, size * size).reshape(size, size)
        met = met + met.T
        return np.asarray(np.diag(met.sum(axis=1)) - met)

    def _identifiable_seats(self) -> FloatArray:
        # What the cells say of the seats once skill has taken all that it can explain: the Schur
        # complement. Its rank does not depend on the strengths, so all chances may be taken as 1/2.
        agents = self._laplacian(self._codes[0], self.cells.games, self.cells.num_agents)
        cross, seats = self._seat_curvature(self.cells.games)
        left = seats - cross.T @ np.linalg.pinv(agents, rcond=1e-12, hermitian=True) @ cross
        values, vectors = np.linalg.eigh(left)
        scale = float(np.trace(seats))
        return np.asarray(vectors[:, values > RELATIVE_RANK * scale])


def fit(
    model: Model,
    games: FloatArray | None = None,
    wins: FloatArray | None = None,
    *,
    start: FloatArray | None = None,
) -> Fit:
    """Maximises the likelihood by Newton's method, steps capped and halved until they climb.

    Args:
        model: the likelihood.
        games: float [num_cells], weights instead of the model's own totals.
        wins: float [num_cells], wins instead of the model's own totals.
        start: float [num_parameters], where to begin; 0 by default.

    Returns:
        The maximum; `converged` is False when there is none (no prior, and somebody never lost).
    """
    games = model.cells.games if games is None else games
    wins = model.cells.wins if wins is None else wins
    at = np.zeros(model.num_parameters) if start is None else start
    gauge, converged = model.gauge(), False
    height = model.log_likelihood(at, games, wins)
    for _ in range(MAX_STEPS):
        gradient, information = model.derivatives(at, games, wins)
        step = _solve(information + gauge, gradient)
        largest = float(np.abs(step).max(initial=0.0))
        if largest < TOLERANCE or gradient @ step < ROUNDING * (1.0 + abs(height)):
            at, converged = at + step, model.is_finite(at + step)
            break
        step *= min(1.0, STEP_CAP / largest)
        at, height, climbed = _climb(model, at, step, height, games, wins)
        if not climbed:
            break
    information = model.derivatives(at, games, wins)[1]
    size = model.cells.num_agents
    return Fit(at[:size], model.seat_effects(at), at, information, converged)


def _climb(
    model: Model, at: FloatArray, step: FloatArray, height: float, games: FloatArray, wins: FloatArray
) -> tuple[FloatArray, float, bool]:
    slack = 1e-13 * (1.0 + abs(height))  # rounding of the sum: near the maximum a good step may seem level
    while np.abs(step).max() > TOLERANCE * 1e-3:
        reached = model.log_likelihood(at + step, games, wins)
        if reached >= height - slack:
            return at + step, reached, True
        step = step / 2.0
    return at, height, False


def _solve(information: FloatArray, gradient: FloatArray) -> FloatArray:
    scale = float(np.trace(information)) / max(len(information), 1)
    for ridge in (0.0, 1e-12, 1e-9, 1e-6):  # only bends the step of a flat likelihood, never the maximum
        try:
            factor = cho_factor(information + ridge * scale * np.eye(len(information)), check_finite=False)
        except LinAlgError:
            continue
        return np.asarray(cho_solve(factor, gradient, check_finite=False))
    return np.asarray(np.linalg.pinv(information, hermitian=True) @ gradient)
