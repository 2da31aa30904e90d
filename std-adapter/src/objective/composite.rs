//! The composite likelihood of any list of components, on any field.
//!
//! Objective (Thesis eq. 2.5; SCL eq. 15 for sets that leave variables out), over samples `s` and components `(A, B)` of weight `β`:
//!
//! ```text
//! f(θ) = Σ_s Σ_(A,B) -β log P_θ(y_A | y_B, x)
//! ```
//!
//! Input: field, parameter index, samples, components. Output: value and gradient, exact up to rounding. `f` is convex if no label is missing
//! and `A ∪ B` is everything. Missing labels, and variables in neither set, are summed out (the file `pattern` has the derivation).
//!
//! How it is computed: the scores of the observed configurations are linear in `θ`, so their sum over all samples is one vector that is made once;
//! what remains in an evaluation is a sum of `log Z` of pieces and their marginals. Pieces of one variable, which is what pseudolikelihood consists
//! of, are normalised 16 at a time, one in each lane; forests of pairwise factors take 8 samples at a time. Memory is one sample's tables for each thread, and a gradient for each of a
//! fixed number of chunks of samples, which are added in order: the same bits on any number of threads.

use super::components::{Component, Components};
use super::pattern::{Finder, Pattern};
use super::piece::{Engines, Piece, SIDE};
use super::tables::{Chunk, Chunks, Tables};
use super::{ObjectiveError, ObjectiveParams};
use crate::features::Index;
use crate::field::{Field, FieldData, MISSING};
use crate::par::{DeskFork, Kernel, Par, vectorized};
use crate::plan::PlanParams;
use gibbsite_core::error::InferError;
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::local;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Variables that are normalised at a time.
const LANES: usize = 16;
/// With fewer samples than this the pieces of each are shared out too.
const UNITS: usize = 64;
/// Pieces of one variable that are worth a unit of work.
const SINGLES: usize = 256;

/// A composite likelihood, ready to be evaluated.
///
/// ```
/// use gibbsite::features::Index;
/// use gibbsite::field::{Field, FieldData, Structure};
/// use gibbsite::objective::{ObjectiveParams, components::Components, composite::Composite};
/// // Two variables that were equal in 3 of 4 samples.
/// let field = Field::pairwise([2, 2], &Structure::Chain, true)?;
/// let mut data = FieldData::without_inputs(&field);
/// for labels in [[0, 0], [1, 1], [1, 1], [0, 1]] {
///     data.push(&field, &labels, [[]; 0])?;
/// }
/// let index = field.index(&[1, 1])?;
/// let mle = Components::mle(&field);
/// let mut likelihood = Composite::new(&field, &index, &data, &mle, &ObjectiveParams::default())?;
/// let mut gradient = vec![0.0; index.len()];
/// let value = likelihood.value_gradient(&vec![0.0; index.len()], &mut gradient);
/// assert!((value - 4.0 * 4f64.ln()).abs() < 1e-12);
/// // Expected less observed counts of (0, 0), (0, 1), (1, 0), (1, 1).
/// assert!(gradient[2..].iter().zip([0.0, 0.0, 1.0, -1.0]).all(|(g, e)| (g - e).abs() < 1e-12));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Composite<'a> {
    tables: Tables<'a>,
    blankets: Blankets,
    pieces: Vec<Piece>,
    parts: Vec<Part>,
    units: Vec<Unit>,
    /// `Σ` of the features at the observed configurations, with weights.
    observed: Vec<f64>,
    chunks: Chunks<Workspace>,
    shared: Vec<f64>,
    fault: Option<InferError>,
    /// Evaluations so far.
    round: u64,
    restless: AtomicU64,
}

/// A share of the pieces of some samples.
#[derive(Debug)]
struct Part {
    singles: Vec<(u32, f64)>,
    pieces: Vec<(u32, f64)>,
    /// Factors with inputs that mention these.
    own: Vec<u32>,
    /// Pieces that several samples go through side by side; they know their own factors.
    forests: Vec<(u32, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    sample: u32,
    part: u32,
}

#[derive(Debug)]
struct Workspace {
    tables: Vec<f64>,
    residual: Vec<f64>,
    engines: Engines,
    scores: Vec<[f64; LANES]>,
    row: Vec<f64>,
}

/// For each variable, where its scores lie in the tables of the factors that mention it.
#[derive(Debug)]
struct Blankets {
    starts: Vec<u32>,
    touches: Vec<Touch>,
    /// `[variable, stride]`.
    others: Vec<[u32; 2]>,
}

#[derive(Debug)]
struct Touch {
    factor: u32,
    at: u32,
    stride: u32,
    first: u32,
    end: u32,
}

impl Blankets {
    fn new(tables: &Tables<'_>) -> Self {
        let (field, cards) = (tables.field, tables.field.cards());
        let (starts, factors) = field.incidence();
        let mut touches = Vec::with_capacity(factors.len());
        let mut others = Vec::new();
        for v in 0..field.variables() {
            for &k in &factors[starts[v] as usize..starts[v + 1] as usize] {
                let scope = field.scope(k as usize);
                let (first, mut step, mut own) = (others.len() as u32, 1, 1);
                for &u in scope.iter().rev() {
                    if u as usize == v {
                        own = step;
                    } else {
                        others.push([u, step]);
                    }
                    step *= cards[u as usize];
                }
                touches.push(Touch {
                    factor: k,
                    at: tables.base[k as usize],
                    stride: own,
                    first,
                    end: others.len() as u32,
                });
            }
        }
        Self { starts, touches, others }
    }

    /// Where the scores of a variable begin, and their stride, in each factor's table at these labels.
    #[inline(always)]
    fn rows<'v>(&'v self, v: u32, labels: &'v [u32]) -> impl Iterator<Item = (usize, usize)> + 'v {
        self.of(v).iter().map(move |touch| (self.at(touch, labels) as usize, touch.stride as usize))
    }

    #[inline(always)]
    fn of(&self, v: u32) -> &[Touch] {
        &self.touches[self.starts[v as usize] as usize..self.starts[v as usize + 1] as usize]
    }

    #[inline(always)]
    fn at(&self, touch: &Touch, labels: &[u32]) -> u32 {
        let others = &self.others[touch.first as usize..touch.end as usize];
        others.iter().fold(touch.at, |at, &[u, stride]| at + labels[u as usize] * stride)
    }
}

impl<'a> Composite<'a> {
    /// Finds and plans the pieces. Time and memory are linear in the data, apart from junction trees.
    ///
    /// # Errors
    /// An [`ObjectiveError`]: things do not fit together, there are no samples, or a component is too wide for exact inference.
    pub fn new(
        field: &'a Field,
        index: &'a Index,
        data: &'a FieldData,
        components: &Components,
        params: &ObjectiveParams,
    ) -> Result<Self, ObjectiveError> {
        // The list may have been made for another field.
        components.check(field)?;
        Self::of(field, index, data, components.list(), params)
    }

    /// As [`new`](Self::new), for components that fit the field but need not cover it.
    pub(super) fn of(
        field: &'a Field,
        index: &'a Index,
        data: &'a FieldData,
        components: &[Component],
        params: &ObjectiveParams,
    ) -> Result<Self, ObjectiveError> {
        let tables = Tables::new(field, index, data)?;
        if data.samples() == 0 {
            return Err(ObjectiveError::NoSamples);
        }
        let mut finder = Finder::new(field);
        let (mut parts, mut units) = (Vec::new(), Vec::new());
        let mut observed = vec![0.0; index.len()];
        for (missing, samples) in by_missing(data) {
            let pattern = finder.pattern(components, &missing);
            for &sample in &samples {
                let labels = data.labels(sample as usize);
                for &(k, weight) in &pattern.observed {
                    if let Some(y) = field.configuration(k as usize, labels) {
                        tables.observe(sample as usize, k as usize, y, weight, &mut observed);
                    }
                }
            }
            let first = parts.len() as u32;
            parts.extend(cut(pattern, data.samples()));
            let all = first..parts.len() as u32;
            // Samples of one part stand together: they may go side by side.
            units.extend(all.flat_map(|part| samples.iter().map(move |&sample| Unit { sample, part })));
        }
        let blankets = Blankets::new(&tables);
        let drafts = std::mem::take(&mut finder.drafts);
        let plan_par = if drafts.len() > 1 { Par::Seq } else { params.par };
        let plan_params = PlanParams { par: plan_par, ..PlanParams::default() };
        let (limit, inference) = (params.max_table_mib, params.inference);
        let pieces = params.par.map(drafts, |draft| {
            Piece::new(&tables, &draft.variables, &draft.factors, (limit, inference), &plan_params).map_err(
                |error| {
                    let (component, variables) = (draft.component, draft.variables.len());
                    ObjectiveError::TooWide { component, variables, error, limit }
                },
            )
        });
        let pieces: Vec<Piece> = pieces.into_iter().collect::<Result<_, _>>()?;
        for part in &mut parts {
            part.forests =
                part.pieces.extract_if(.., |piece| pieces[piece.0 as usize].is_pairwise()).collect();
            part.own = own_factors(&tables, part, |piece| pieces[piece as usize].own());
        }
        Ok(Self {
            shared: vec![0.0; tables.shared_len],
            chunks: Chunks::new(units.len(), index.len(), params.par),
            tables,
            blankets,
            pieces,
            parts,
            units,
            observed,
            fault: None,
            round: 0,
            restless: AtomicU64::new(0),
        })
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.observed.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.observed.is_empty()
    }

    /// How many conditional distributions an evaluation normalises: pieces of all samples.
    pub fn conditionals(&self) -> usize {
        let each = |unit: &Unit| {
            let part = &self.parts[unit.part as usize];
            part.singles.len() + part.pieces.len() + part.forests.len()
        };
        self.units.iter().map(each).sum()
    }

    /// The field that it is about.
    pub(super) fn field(&self) -> &Field {
        self.tables.field
    }

    /// Sample and variable of each local regression, if it consists of nothing else, all of weight 1.
    pub(super) fn regressions(&self) -> Option<Vec<(u32, u32)>> {
        let plain = |part: &Part| {
            part.pieces.is_empty()
                && part.forests.is_empty()
                && part.singles.iter().all(|single| single.1 == 1.0)
        };
        self.parts.iter().all(plain).then(|| {
            let each = |unit: &Unit| {
                let sample = unit.sample;
                self.parts[unit.part as usize].singles.iter().map(move |single| (sample, single.0))
            };
            self.units.iter().flat_map(each).collect()
        })
    }

    /// Appends parameters and values of the features of variable `v` that has label `x`, the others as observed. Returns whether that was its own.
    pub(super) fn features(&self, sample: usize, v: u32, x: u32, out: &mut Vec<(u32, f64)>) -> bool {
        let (tables, labels) = (&self.tables, self.tables.data.labels(sample));
        for touch in self.blankets.of(v) {
            let at = self.blankets.at(touch, labels) + x * touch.stride;
            let (k, template) = (touch.factor as usize, tables.field.template(touch.factor as usize));
            let mut add = |attribute: u32, value: f64| {
                if let Some(p) = tables.index.parameter(template, attribute, at - touch.at) {
                    out.push((p as u32, value));
                }
            };
            match tables.data.row(sample, k) {
                None => add(0, 1.0),
                Some(row) => row.iter().for_each(|(attribute, value)| add(attribute, value)),
            }
        }
        labels[v as usize] == x
    }

    /// What went wrong in the last evaluation, if its value was not finite.
    pub fn fault(&self) -> Option<InferError> {
        self.fault
    }

    /// Whether some pieces are too wide for exact inference, so that value and gradient are estimates.
    pub fn is_estimated(&self) -> bool {
        self.pieces.iter().any(Piece::is_estimated)
    }

    /// In how many pieces of samples belief propagation did not come to rest in the last evaluation: their estimates mean little.
    pub fn restless(&self) -> u64 {
        self.restless.load(Ordering::Relaxed)
    }

    /// `f(θ)`; its gradient is written to `gradient`. If a score leaves the range of numbers, the value is `+inf` and the gradient NaN
    /// ([`fault`](Self::fault) says why): a line search then steps back.
    ///
    /// # Panics
    /// If `theta` or `gradient` does not have [`len`](Self::len) entries.
    pub fn value_gradient(&mut self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        assert_eq!((theta.len(), gradient.len()), (self.len(), self.len()), "one number for each parameter");
        self.tables.fill_shared(theta, &mut self.shared);
        self.round += 1;
        *self.restless.get_mut() = 0;
        for (g, &o) in gradient.iter_mut().zip(&self.observed) {
            *g = -o;
        }
        let mut chunks = std::mem::take(&mut self.chunks);
        let this = &*self;
        let alone = chunks.par_within();
        let (value, fault) = chunks.finish(
            || this.workspace(alone),
            |workspace, chunk| this.chunk(theta, workspace, chunk),
            Ok(0.0),
            (theta, &this.observed),
            gradient,
        );
        (self.chunks, self.fault) = (chunks, fault);
        value
    }

    fn workspace(&self, par: Par) -> Workspace {
        Workspace {
            tables: vec![0.0; self.tables.len],
            residual: vec![0.0; self.tables.len],
            engines: Engines::new(DeskFork::new(par)),
            scores: vec![],
            row: vec![],
        }
    }

    fn chunk(&self, theta: &[f64], workspace: &mut Workspace, chunk: &mut Chunk) -> Result<(), InferError> {
        let shared = self.tables.shared_len;
        workspace.tables[..shared].copy_from_slice(&self.shared);
        workspace.residual[..shared].fill(0.0);
        workspace.engines.restless = 0;
        // The same chains on any number of threads, other ones in each evaluation.
        workspace.engines.draw = (self.round << 32) ^ chunk.units.start as u64;
        for alike in self.units[chunk.units.clone()].chunk_by(|a, b| a.part == b.part) {
            let mut opened = vec![None; self.parts[alike[0].part as usize].pieces.len()];
            for units in alike.chunks(SIDE) {
                let part = &self.parts[units[0].part as usize];
                for &forest in &part.forests {
                    chunk.value += self.side_by_side(forest, units, theta, workspace, &mut chunk.gradient)?;
                }
                if !part.singles.is_empty() || !part.pieces.is_empty() {
                    for unit in units {
                        let sample = unit.sample as usize;
                        let memory = (&mut *workspace, &mut opened[..]);
                        chunk.value += self.one_by_one(part, sample, theta, memory, &mut chunk.gradient)?;
                    }
                }
            }
        }
        self.tables.gather_shared(&workspace.residual, &mut chunk.gradient);
        self.restless.fetch_add(workspace.engines.restless, Ordering::Relaxed);
        Ok(())
    }

    /// A piece in up to [`SIDE`] samples: `Σ weight · log Z`.
    fn side_by_side(
        &self,
        (piece, weight): (u32, f64),
        units: &[Unit],
        theta: &[f64],
        workspace: &mut Workspace,
        gradient: &mut [f64],
    ) -> Result<f64, InferError> {
        let piece = &self.pieces[piece as usize];
        let Workspace { tables, residual, engines, .. } = workspace;
        let samples = || units.iter().map(|unit| unit.sample as usize).enumerate();
        for (lane, sample) in samples() {
            self.tables.fill_own(sample, piece.own(), theta, tables);
            piece.enter_lane(lane, tables, self.tables.data.labels(sample), engines);
        }
        let done = piece.run_lanes(engines)?;
        let mut value = 0.0;
        for (lane, sample) in samples() {
            let labels = self.tables.data.labels(sample);
            self.tables.clear(piece.own(), residual);
            if let Some(log_z) = &done {
                piece.leave_lane(lane, weight, labels, engines, residual);
                value += weight * log_z[lane];
            } else {
                self.tables.fill_own(sample, piece.own(), theta, tables);
                value += weight * piece.log_z(tables, labels, weight, (engines, &mut None), residual)?;
            }
            self.tables.gather_own(sample, piece.own(), residual, gradient);
        }
        Ok(value)
    }

    /// What else a sample has: `Σ weight · log Z`.
    fn one_by_one<'p>(
        &'p self,
        part: &Part,
        sample: usize,
        theta: &[f64],
        (workspace, opened): (&mut Workspace, &mut [Option<Plan<'p>>]),
        gradient: &mut [f64],
    ) -> Result<f64, InferError> {
        let labels = self.tables.data.labels(sample);
        let Workspace { tables, residual, engines, .. } = workspace;
        self.tables.fill_own(sample, &part.own, theta, tables);
        self.tables.clear(&part.own, residual);
        let mut value = 0.0;
        for (&(piece, weight), opened) in part.pieces.iter().zip(opened) {
            let piece = &self.pieces[piece as usize];
            value += weight * piece.log_z(tables, labels, weight, (engines, opened), residual)?;
        }
        value += self.singles(&part.singles, labels, workspace)?;
        self.tables.gather_own(sample, &part.own, &workspace.residual, gradient);
        Ok(value)
    }

    /// Pieces of one variable: `Σ weight · log Z`, their probabilities to the residuals.
    fn singles(
        &self,
        singles: &[(u32, f64)],
        labels: &[u32],
        workspace: &mut Workspace,
    ) -> Result<f64, InferError> {
        let cards = self.tables.field.cards();
        let mut value = 0.0;
        for alike in singles.chunk_by(|a, b| cards[a.0 as usize] == cards[b.0 as usize]) {
            let arity = cards[alike[0].0 as usize] as usize;
            let batches = alike.chunks(LANES);
            // Lengths that the compiler knows make loops of a few instructions.
            let Workspace { tables, residual, scores, row, .. } = &mut *workspace;
            let mut run = |batch: &[(u32, f64)]| match arity {
                2 => self.batch::<2>(batch, arity, labels, tables, residual, scores, row),
                3 => self.batch::<3>(batch, arity, labels, tables, residual, scores, row),
                4 => self.batch::<4>(batch, arity, labels, tables, residual, scores, row),
                5 => self.batch::<5>(batch, arity, labels, tables, residual, scores, row),
                6 => self.batch::<6>(batch, arity, labels, tables, residual, scores, row),
                8 => self.batch::<8>(batch, arity, labels, tables, residual, scores, row),
                10 => self.batch::<10>(batch, arity, labels, tables, residual, scores, row),
                _ => self.batch::<0>(batch, arity, labels, tables, residual, scores, row),
            };
            value = batches.fold(value, |sum, batch| sum + run(batch));
        }
        if value.is_finite() { Ok(value) } else { Err(InferError::BadValue) }
    }

    /// Up to [`LANES`] variables of the same arity, which is `A` unless `A` is 0: `Σ weight · log Z`.
    #[allow(clippy::too_many_arguments)] // The parts of a workspace.
    fn batch<const A: usize>(
        &self,
        batch: &[(u32, f64)],
        arity: usize,
        labels: &[u32],
        tables: &[f64],
        residual: &mut [f64],
        scores: &mut Vec<[f64; LANES]>,
        row: &mut Vec<f64>,
    ) -> f64 {
        let arity = if A > 0 { A } else { arity };
        scores.resize(arity, [0.0; LANES]);
        row.resize(arity, 0.0);
        let row = &mut row[..arity];
        for (lane, &(v, _)) in batch.iter().enumerate() {
            row.fill(0.0);
            for (at, stride) in self.blankets.rows(v, labels) {
                let from = &tables[at..at + (arity - 1) * stride + 1];
                if stride == 1 {
                    row.iter_mut().zip(from).for_each(|(s, &t)| *s += t);
                } else {
                    row.iter_mut().enumerate().for_each(|(x, s)| *s += from[x * stride]);
                }
            }
            scores.iter_mut().zip(row.iter()).for_each(|(lanes, &s)| lanes[lane] = s);
        }
        let mut log_z = [0.0; LANES];
        vectorized(Normalise { scores, log_z: &mut log_z });
        let mut value = 0.0;
        for (lane, &(v, weight)) in batch.iter().enumerate() {
            value += weight * log_z[lane];
            row.iter_mut().zip(scores.iter()).for_each(|(p, lanes)| *p = weight * lanes[lane]);
            for (at, stride) in self.blankets.rows(v, labels) {
                let to = &mut residual[at..at + (arity - 1) * stride + 1];
                if stride == 1 {
                    row.iter().zip(to).for_each(|(&p, r)| *r += p);
                } else {
                    row.iter().enumerate().for_each(|(x, &p)| to[x * stride] += p);
                }
            }
        }
        value
    }
}

struct Normalise<'w> {
    scores: &'w mut [[f64; LANES]],
    log_z: &'w mut [f64; LANES],
}

impl Kernel for Normalise<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        local::conditionals(self.scores, self.log_z);
    }
}

/// Samples with the same labels missing, in the order of their first.
fn by_missing(data: &FieldData) -> Vec<(Vec<bool>, Vec<u32>)> {
    let mut numbers: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut groups: Vec<(Vec<bool>, Vec<u32>)> = Vec::new();
    for sample in 0..data.samples() {
        let missing = || data.labels(sample).iter().map(|&label| label == MISSING);
        let key: Vec<u32> = (0..).zip(missing()).filter(|&(_, missing)| missing).map(|(v, _)| v).collect();
        let group = *numbers.entry(key).or_insert_with(|| {
            groups.push((missing().collect(), vec![]));
            groups.len() - 1
        });
        groups[group].1.push(sample as u32);
    }
    groups
}

/// Cuts a pattern into parts, if there are few samples: at least [`SINGLES`] variables or one larger piece in each.
fn cut(pattern: Pattern, samples: usize) -> impl Iterator<Item = Part> {
    let Pattern { singles, pieces, .. } = pattern;
    let wanted = UNITS.div_ceil(samples.max(1));
    let parts = wanted.min((singles.len() / SINGLES).max(pieces.len()).max(1));
    (0..parts).map(move |i| {
        let share = |n: usize| i * n / parts..(i + 1) * n / parts;
        let singles = singles[share(singles.len())].to_vec();
        Part { singles, pieces: pieces[share(pieces.len())].to_vec(), own: vec![], forests: vec![] }
    })
}

/// The factors with inputs that a part's pieces mention, ascending.
fn own_factors<'d>(tables: &Tables<'_>, part: &Part, factors_of: impl Fn(u32) -> &'d [u32]) -> Vec<u32> {
    if tables.own.is_empty() {
        return vec![];
    }
    let mut needed = vec![false; tables.field.factors()];
    for &(piece, _) in &part.pieces {
        factors_of(piece).iter().for_each(|&k| needed[k as usize] = true);
    }
    let mut single = vec![false; tables.field.variables()];
    part.singles.iter().for_each(|&(v, _)| single[v as usize] = true);
    let mentions = |k: u32| tables.field.scope(k as usize).iter().any(|&v| single[v as usize]);
    tables.own.iter().copied().filter(|&k| needed[k as usize] || mentions(k)).collect()
}
