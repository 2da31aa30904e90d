//! How many coordinates can be changed at a time: `ρ`, `P*`, the speed-up that Theorem 4.3.2 promises, and the exact simulation of 4.3.2.

pub use crate::solver::spectral::{SpectralInfo, SpectralParams, spectral_radius};

use crate::par::Par;
use crate::regress::problem::{Problem, Weights};
use crate::solver::shotgun::{Rounds, State, Tally};
use gibbsite_core::loss::Loss;
use gibbsite_core::math::Real;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The bound of Theorem 4.3.2 on a problem: `E F(x^T) - F* ≤ d(β‖x*‖² + 2F(0)/(1 - ε)) / ((T + 1)P)` with `ε = (P - 1)(ρ - 1)/(2d - 1)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// `d`.
    pub columns: usize,
    /// `ρ`.
    pub rho: f64,
    /// `β‖x*‖²`, with `x*` for columns of unit norm; 0 for the most cautious answer.
    pub distance: f64,
    /// `F(0)`.
    pub start: f64,
}

impl Bound {
    /// `ε`: how much interference `parallel` coordinates at a time can do. The theorem speaks of `ε < 1` only.
    pub fn interference(&self, parallel: usize) -> f64 {
        (parallel.max(1) - 1) as f64 * (self.rho - 1.0).max(0.0) / (2 * self.columns.max(1) - 1) as f64
    }

    /// `T(P)/T(1)`: rounds to the same bound, as a share of those that Shooting needs. `None` where the theorem promises nothing.
    ///
    /// ```
    /// use gibbsite::theory::parallelism::Bound;
    /// let orthogonal = Bound { columns: 10, rho: 1.0, distance: 0.0, start: 1.0 };
    /// assert_eq!(orthogonal.rounds_ratio(10), Some(0.1));
    /// let equal = Bound { rho: 10.0, ..orthogonal };
    /// assert_eq!(equal.rounds_ratio(10), None);
    /// ```
    pub fn rounds_ratio(&self, parallel: usize) -> Option<f64> {
        let epsilon = self.interference(parallel);
        if epsilon >= 1.0 {
            return None;
        }
        let bound = |epsilon: f64| self.distance + 2.0 * self.start / (1.0 - epsilon);
        Some(bound(epsilon) / (bound(0.0) * parallel.max(1) as f64))
    }
}

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulateParams {
    /// The `P` to try.
    pub parallel: Vec<usize>,
    /// Runs whose objectives are averaged; the thesis takes 10.
    pub runs: usize,
    /// Done when the average is within this share of the optimum; the thesis takes 0.5 %.
    pub accuracy: f64,
    /// A `P` is given up after that many epochs (updates per column).
    pub max_epochs: u64,
    /// Threads; runs are spread over them.
    pub par: Par,
    /// Seed of the choices.
    pub seed: u64,
}

impl SimulateParams {
    /// As in the thesis: the average of 10 runs to 0.5 %.
    pub fn new(parallel: Vec<usize>) -> Self {
        Self { parallel, runs: 10, accuracy: 0.005, max_epochs: 10_000, par: Par::Seq, seed: 0 }
    }
}

/// How Shotgun did at one `P`.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// `P`.
    pub parallel: usize,
    /// Rounds until the average objective was near enough; `None` if that did not happen.
    pub rounds: Option<u64>,
    /// The same for the average over all runs but one, each in turn; empty if there is one run only.
    pub without: Vec<Option<u64>>,
    /// Whether the objective ran away.
    pub diverged: bool,
    /// The average objective when it was near enough, or at the end.
    pub objective: f64,
}

impl Simulated {
    /// Standard error of [`rounds`](Self::rounds), by the jackknife.
    pub fn rounds_se(&self) -> Option<f64> {
        jackknife(self.without.iter().map(|r| Some((*r)? as f64)))
    }

    /// Rounds that one coordinate at a time took, by the rounds here.
    pub fn speed_up(&self, alone: &Self) -> Option<f64> {
        Some(alone.rounds? as f64 / self.rounds?.max(1) as f64)
    }

    /// Its standard error, by the jackknife over pairs of runs: those of a pair have drawn the same coordinates, so that most of their luck cancels.
    ///
    /// ```
    /// use gibbsite::theory::parallelism::Simulated;
    /// let run = |parallel, a, b| {
    ///     Simulated { parallel, rounds: Some((a + b) / 2), without: vec![Some(b), Some(a)], diverged: false, objective: 1.0 }
    /// };
    /// let (alone, two) = (run(1, 800, 1000), run(2, 400, 500));
    /// assert_eq!((two.rounds_se(), two.speed_up(&alone), two.speed_up_se(&alone)), (Some(50.0), Some(2.0), Some(0.0)));
    /// ```
    pub fn speed_up_se(&self, alone: &Self) -> Option<f64> {
        let pairs = alone.without.iter().zip(&self.without);
        jackknife(pairs.map(|(alone, own)| Some((*alone)? as f64 / (*own)?.max(1) as f64)))
    }
}

/// `√((n - 1)/n · Σ (t_i - t̄)²)` over what a statistic is without each of `n` samples (Tukey 1958); `None` if there are fewer than two, or one is missing.
fn jackknife(without: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all = without.collect::<Option<Vec<f64>>>().filter(|all| all.len() > 1)?;
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    Some((all.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() * (n - 1.0) / n).sqrt())
}

/// Why nothing can be simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SimulateError {
    /// The matrix has no columns or no rows.
    Empty,
    /// No runs were asked for.
    NoRuns,
    /// The optimum is not a positive number, so that nothing is within a share of it.
    Optimum(f64),
    /// More coordinates at a time than there are.
    Parallel {
        /// As asked.
        asked: usize,
        /// Columns.
        columns: usize,
    },
}

impl std::fmt::Display for SimulateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => write!(f, "there is nothing to simulate: the matrix is empty"),
            Self::NoRuns => write!(f, "at least one run is needed"),
            Self::Optimum(v) => write!(
                f,
                "the least objective is {v}, expected a positive number: rounds are counted until they are within a share of it"
            ),
            Self::Parallel { asked, columns } => {
                write!(f, "{asked} coordinates at a time were asked for, but there are {columns}")
            }
        }
    }
}

impl std::error::Error for SimulateError {}

/// The objective has run away when it is that many times `F(0)`.
const RUNAWAY: f64 = 100.0;

/// The exact simulation of Thesis 4.3.2 (Fig. 4.2): rounds of Alg. 4.2 as printed (a uniformly random set of `P` coordinates, plain rule), from 0, until the
/// objective averaged over `runs` is at most `(1 + accuracy)·optimum`.
///
/// The objective is looked at 64 times an epoch (after each round if there are fewer). Run `r` draws its coordinates from one stream at every `P`, so that
/// speed-ups compare like with like; streams of different runs and seeds have nothing in common.
///
/// # Errors
/// A [`SimulateError`] if the question makes no sense.
pub fn simulate<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    optimum: f64,
    params: &SimulateParams,
) -> Result<Vec<Simulated>, SimulateError> {
    let d = problem.matrix.columns();
    if d == 0 || problem.target.is_empty() {
        return Err(SimulateError::Empty);
    }
    if params.runs == 0 {
        return Err(SimulateError::NoRuns);
    }
    if !(optimum > 0.0 && optimum.is_finite()) {
        return Err(SimulateError::Optimum(optimum));
    }
    if let Some(&asked) = params.parallel.iter().find(|&&p| p > d) {
        return Err(SimulateError::Parallel { asked, columns: d });
    }
    Ok(params
        .parallel
        .iter()
        .map(|&parallel| simulate_one(problem, optimum, parallel.max(1), params))
        .collect())
}

/// A stream of uniformly random coordinates, cut into rounds.
#[derive(Clone, Debug)]
struct Stream {
    rng: Xoshiro256PlusPlus,
    chosen: Vec<u32>,
    /// The last round that each coordinate was in, counted from 1.
    last: Vec<u64>,
    round: u64,
}

impl Stream {
    fn new(columns: usize, rng: Xoshiro256PlusPlus) -> Self {
        Self { rng, chosen: Vec::new(), last: vec![0; columns], round: 0 }
    }

    /// The next `parallel` different coordinates. One that the round has already is dropped: what is left is a uniformly random set.
    fn round(&mut self, parallel: usize) -> &[u32] {
        self.round += 1;
        self.chosen.clear();
        while self.chosen.len() < parallel.min(self.last.len()) {
            let j = self.rng.random_range(0..self.last.len());
            if std::mem::replace(&mut self.last[j], self.round) < self.round {
                self.chosen.push(j as u32);
            }
        }
        &self.chosen
    }
}

/// One run, and its objective.
struct Walk {
    stream: Stream,
    state: State,
    rounds: Rounds,
    objective: f64,
}

/// One `P`.
fn simulate_one<L: Loss, V: Real>(
    problem: &Problem<'_, L, V>,
    optimum: f64,
    parallel: usize,
    params: &SimulateParams,
) -> Simulated {
    let d = problem.matrix.columns();
    let between = (d / (64 * parallel)).max(1) as u64;
    let most = (params.max_epochs.saturating_mul(d as u64)).div_ceil(parallel as u64);
    let goal = (1.0 + params.accuracy) * optimum;
    let runaway = RUNAWAY * problem.objective_at_zero();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(params.seed);
    let mut walks: Vec<Walk> = (0..params.runs)
        .map(|_| {
            let stream = Stream::new(d, rng.clone());
            // 2¹²⁸ numbers on.
            rng.jump();
            let state = State::new(problem, Weights::zero(d));
            let objective = state.objective(problem);
            Walk { stream, state, rounds: Rounds::new(problem, Par::Seq), objective }
        })
        .collect();
    let others = if params.runs > 1 { params.runs } else { 0 };
    let mut found =
        Simulated { parallel, rounds: None, without: vec![None; others], diverged: false, objective: 0.0 };
    let mut rounds = 0;
    loop {
        let sum = walks.iter().map(|walk| walk.objective).sum::<f64>();
        if found.rounds.is_none() {
            found.objective = sum / params.runs as f64;
            found.diverged = found.objective.is_nan() || found.objective > runaway;
            found.rounds = (found.objective <= goal).then_some(rounds);
        }
        for (without, walk) in found.without.iter_mut().zip(&walks) {
            let near = (sum - walk.objective) / (params.runs - 1) as f64 <= goal;
            *without = without.or(near.then_some(rounds));
        }
        let all = found.rounds.is_some() && found.without.iter().all(Option::is_some);
        if all || found.diverged || rounds >= most {
            return found;
        }
        walks = params.par.map(walks, |mut walk| {
            let mut swept = Tally::default();
            for _ in 0..between {
                walk.rounds.round(problem, &mut walk.state, walk.stream.round(parallel), &mut swept);
            }
            walk.state.settle_intercept(problem);
            walk.objective = walk.state.objective(problem);
            walk
        });
        rounds += between;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_any_size_come_from_one_stream() {
        let stream = || Stream::new(10, Xoshiro256PlusPlus::seed_from_u64(3));
        let mut alone = stream();
        let drawn: Vec<u32> = (0..4000).map(|_| alone.round(1)[0]).collect();
        let (mut by_four, mut next, mut times) = (stream(), drawn.iter(), [0u32; 10]);
        for _ in 0..500 {
            let round = by_four.round(4);
            let mut expected = Vec::new();
            while expected.len() < 4 {
                let j = next.next().unwrap();
                if !expected.contains(j) {
                    expected.push(*j);
                }
            }
            assert_eq!(round, expected);
            round.iter().for_each(|&j| times[j as usize] += 1);
        }
        // 500 rounds, each with a chance of 4/10: a standard deviation of 11.
        assert!(times.iter().all(|t| (150..=250).contains(t)), "{times:?}");
        assert_eq!(stream().round(10).len(), 10);
    }
}
