//! Passes over all parameters, in blocks of a fixed length: vectorised, on threads, and joined in the order of the blocks.

use crate::par::{Kernel, Par, vectorized};
use gibbsite_core::penalty::Penalty;

/// Parameters at a time: a handful of such pieces fit the first cache, and half a million parameters make hundreds of them.
pub(super) const BLOCK: usize = 2048;

/// Partial sums at a time.
pub(super) const LANES: usize = 8;

/// The lanes' total, in a fixed order.
#[inline(always)]
pub(super) fn join(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// `Σ_i (first, second, third)(a_i, b_i, c_i, d_i)`: three sums over four slices at once.
#[inline(always)]
pub(super) fn sums([a, b, c, d]: [&[f64]; 4], terms: impl Fn(f64, f64, f64, f64) -> [f64; 3]) -> [f64; 3] {
    let mut lanes = [[0.0; LANES]; 3];
    let [ac, bc, cc, dc] = [a, b, c, d].map(|x| x.chunks_exact(LANES));
    let rest = ac.remainder().iter().zip(bc.remainder()).zip(cc.remainder()).zip(dc.remainder());
    for (lane, (((&a, &b), &c), &d)) in rest.enumerate() {
        let terms = terms(a, b, c, d);
        (0..3).for_each(|k| lanes[k][lane] += terms[k]);
    }
    for (((a, b), c), d) in ac.zip(bc).zip(cc).zip(dc) {
        for lane in 0..LANES {
            let terms = terms(a[lane], b[lane], c[lane], d[lane]);
            for k in 0..3 {
                lanes[k][lane] += terms[k];
            }
        }
    }
    lanes.map(join)
}

/// `out = θ + t·d`. Returns what the penalties cost there.
pub(super) fn advance(
    par: Par,
    theta: &[f64],
    direction: &[f64],
    step: f64,
    penalty: Penalty<f64>,
    out: &mut [f64],
) -> f64 {
    let items: Vec<_> = theta.chunks(BLOCK).zip(direction.chunks(BLOCK)).zip(out.chunks_mut(BLOCK)).collect();
    let costs = par.map(items, |((theta, direction), out)| {
        vectorized(Advance { theta, direction, step, out });
        vectorized(Cost { theta: out, penalty })
    });
    costs.into_iter().sum()
}

struct Advance<'a> {
    theta: &'a [f64],
    direction: &'a [f64],
    step: f64,
    out: &'a mut [f64],
}

impl Kernel for Advance<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((out, &theta), &direction) in self.out.iter_mut().zip(self.theta).zip(self.direction) {
            *out = theta + self.step * direction;
        }
    }
}

/// What the penalties cost.
pub(super) fn cost(par: Par, theta: &[f64], penalty: Penalty<f64>) -> f64 {
    let costs = par.map(theta.chunks(BLOCK).collect(), |theta| vectorized(Cost { theta, penalty }));
    costs.into_iter().sum()
}

struct Cost<'a> {
    theta: &'a [f64],
    penalty: Penalty<f64>,
}

impl Kernel for Cost<'_> {
    type Output = f64;
    #[inline(always)]
    fn run(self) -> f64 {
        let Self { theta, penalty } = self;
        let [sum, _, _] = sums([theta; 4], |x, _, _, _| [penalty.value(x), 0.0, 0.0]);
        sum
    }
}

/// What an evaluated point looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    /// `gᵀd`; not finite if a component of the gradient is not.
    pub(super) slope: f64,
    /// `‖violation‖∞`.
    pub(super) violation: f64,
    /// Components of `θ` that are not 0.
    pub(super) nonzeros: usize,
}

/// Adds the ridge to a gradient, and looks at the point.
pub(super) fn look(
    par: Par,
    theta: &[f64],
    gradient: &mut [f64],
    direction: &[f64],
    penalty: Penalty<f64>,
) -> Look {
    let items: Vec<_> =
        theta.chunks(BLOCK).zip(gradient.chunks_mut(BLOCK)).zip(direction.chunks(BLOCK)).collect();
    let looks = par.map(items, |((theta, gradient), direction)| {
        vectorized(LookAt { theta, gradient, direction, penalty })
    });
    looks.into_iter().fold(Look { slope: 0.0, violation: 0.0, nonzeros: 0 }, |a, b| Look {
        slope: a.slope + b.slope,
        violation: a.violation.max(b.violation),
        nonzeros: a.nonzeros + b.nonzeros,
    })
}

struct LookAt<'a> {
    theta: &'a [f64],
    gradient: &'a mut [f64],
    direction: &'a [f64],
    penalty: Penalty<f64>,
}

impl Kernel for LookAt<'_> {
    type Output = Look;
    #[inline(always)]
    fn run(self) -> Look {
        let Self { theta, gradient, direction, penalty } = self;
        for (gradient, &theta) in gradient.iter_mut().zip(theta) {
            *gradient += penalty.l2 * theta;
        }
        let lasso = Penalty { l2: 0.0, ..penalty };
        let [slope, nonzeros, _] = sums([theta, gradient, direction, theta], |x, g, d, _| {
            [g * d, if x == 0.0 { 0.0 } else { 1.0 }, 0.0]
        });
        let violation =
            theta.iter().zip(gradient).fold(0.0f64, |most, (&x, &mut g)| most.max(lasso.violation(x, g)));
        Look { slope, violation, nonzeros: nonzeros as usize }
    }
}

/// `‖θ' - θ‖²`, `‖g' - g‖²`, `(θ' - θ)ᵀ(g' - g)`.
pub(super) fn pair_products(par: Par, theta: [&[f64]; 2], gradient: [&[f64]; 2]) -> [f64; 3] {
    let [from, to, before, after] = [theta[0], theta[1], gradient[0], gradient[1]].map(|x| x.chunks(BLOCK));
    let items: Vec<_> = from.zip(to).zip(before).zip(after).collect();
    let parts = par.map(items, |(((from, to), before), after)| vectorized(Pair([from, to, before, after])));
    parts.into_iter().fold([0.0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
}

struct Pair<'a>([&'a [f64]; 4]);

impl Kernel for Pair<'_> {
    type Output = [f64; 3];
    #[inline(always)]
    fn run(self) -> [f64; 3] {
        sums(self.0, |from, to, before, after| {
            let (s, y) = (to - from, after - before);
            [s * s, y * y, s * y]
        })
    }
}
