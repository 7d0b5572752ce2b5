"""Draws points of the Sobol sequence, which fill the unit cube more evenly than random points."""
import gradus

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points of the Sobol sequence from [0, 1)^dimension, in order. The direction numbers are those of Joe and Kuo (2008), as in PyTorch.

    Args:
        dimension (int): the number of coordinates of a point, from 1 to 21201.
        scramble (bool, optional): scrambles the points by random lower triangular matrices of bits and random shifts (Owen, 1995).
        seed (int, optional): the seed for the random bits. By default the default generator draws them.

    >>> SobolEngine(dimension=2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = gradus.zeros(dimension, self.MAXBIT, dtype=gradus.int64, device="cpu")
        gradus._sobol_engine_initialize_state_(self.sobolstate, dimension)
        self.shift = self._scramble() if scramble else gradus.zeros(dimension, dtype=gradus.int64, device="cpu")
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self):
        """Scrambles the direction numbers in place. Returns the first point, as one integer of MAXBIT bits for each dimension."""
        generator = None if self.seed is None else gradus.Generator().manual_seed(self.seed)
        bits = gradus.randint(2, (self.dimension, self.MAXBIT), generator=generator, dtype=gradus.int64, device="cpu")
        matrices = gradus.randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator, dtype=gradus.int64, device="cpu").tril()
        gradus._sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)
        return bits @ 2**gradus.arange(self.MAXBIT, device="cpu")

    def draw(self, n=1, out=None, dtype=None):
        """Returns the next `n` points, as a tensor of shape (n, dimension). `dtype` defaults to the default dtype.

        >>> SobolEngine(1).fast_forward(1).draw(3).flatten().tolist()
        [0.5, 0.75, 0.25]
        """
        dtype = dtype or gradus.get_default_dtype()
        first = self._first_point.to(dtype)
        if self.num_generated == 0 and n == 1:
            points = first
        else:
            begins = self.num_generated == 0
            points, self.quasi = gradus._sobol_engine_draw(self.quasi, n - begins, self.sobolstate, self.dimension,
                                                           self.num_generated - (not begins), dtype=dtype)
            points = gradus.cat((first, points)) if begins else points
        self.num_generated += n
        return points if out is None else out.resize_as_(points).copy_(points)

    def draw_base2(self, m, out=None, dtype=None):
        """Returns the next 2^m points, as a tensor of shape (2^m, dimension). ValueError: the number of all points drawn, including these 2^m, is not
        a power of 2. The points are distributed most evenly if their number is a power of 2."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously "
                             f"generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' "
                             "instead.")
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Restarts the sequence at its first point. Returns the engine."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Skips the next `n` points. Returns the engine."""
        begins = self.num_generated == 0
        gradus._sobol_engine_ff_(self.quasi, n - begins, self.sobolstate, self.dimension, self.num_generated - (not begins))
        self.num_generated += n
        return self

    def __repr__(self):
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"
