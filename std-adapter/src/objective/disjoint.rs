//! Disjoint optimisation (Thesis 2.3.4): each component is a problem of its own over the parameters that take part in it, and parameters
//! that take part in several are averaged:
//!
//! ```text
//! θ̂_t = avg_{i: θ_t ∈ θ_{A_i}} θ̂_t^(A_i)                                              (eq. 2.18)
//! ```
//!
//! Data parallel, and without communication; statistically worse than joint optimisation by up to a factor `|𝒜|²` in samples
//! (Theorem 2.3.7). Input: as for [`Composite`], and a solver for one problem. Where components share no parameters the result is the joint optimum.
//!
//! Averages mean something only for parameters that each component determines. In tables of all configurations it does not: `P(y_i | y_j)` leaves
//! `ψ_ij` open up to a function of `y_j`, every problem fills that in differently, and (2.18) is then not even consistent (on a 2×3 grid
//! we measured an error of 0.68 in `log P` with 1,600 samples and with 25,600). Use
//! [`Coverage::Reference`](crate::field::Coverage::Reference), or tied parameters as the thesis does, where the theorem holds.
//!
//! Each problem is cut out of the whole, by the Markov property: the component's variables, what may be free beside them, and
//! their neighbours; the attributes that occur there. Its size does not depend on the rest of the field.

use super::components::{Component, Components, Given};
use super::composite::Composite;
use super::{ObjectiveError, ObjectiveParams};
use crate::features::Index;
use crate::field::{Field, FieldData, MISSING};
use crate::par::Par;
use std::fmt;

/// What disjoint optimisation found.
#[derive(Clone, Debug, PartialEq)]
pub struct Averaged {
    /// The parameters; those that take part in no component are as they were at the start.
    pub theta: Vec<f64>,
    /// In how many components each takes part.
    pub components: Vec<u32>,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub enum DisjointError<E> {
    /// A problem could not be set up.
    Objective(ObjectiveError),
    /// The solver failed.
    Solver {
        /// On this component.
        component: usize,
        /// With this.
        error: E,
    },
}

impl<E: fmt::Display> fmt::Display for DisjointError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objective(e) => write!(f, "{e}"),
            Self::Solver { component, error } => write!(f, "component {component}: {error}"),
        }
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for DisjointError<E> {}

/// Components that are solved before their results are added: bounds the memory.
const BATCH: usize = 64;

/// Solves each component by itself, in parallel, and averages. `solve` gets a problem and where to start.
///
/// ```
/// use gibbsite::field::{Field, FieldData, Structure};
/// use gibbsite::objective::{ObjectiveParams, components::Components, disjoint::disjoint};
/// use gibbsite::par::Par;
/// let field = Field::pairwise([2, 2], &Structure::Independent, false)?;
/// let mut data = FieldData::without_inputs(&field);
/// for labels in [[0, 0], [0, 1], [0, 1], [1, 1]] {
///     data.push(&field, &labels, [[]; 0])?;
/// }
/// let index = field.index(&[1, 1])?;
/// let params = ObjectiveParams { par: Par::Seq, ..Default::default() };
/// let found = disjoint(&field, &index, &data, &Components::pseudo(&field), &params, &[0.0; 4], |problem, start| {
///     // A solver for the hurried.
///     let (mut theta, mut gradient) = (start.to_vec(), vec![0.0; problem.len()]);
///     for _ in 0..100 {
///         problem.value_gradient(&theta, &mut gradient);
///         theta.iter_mut().zip(&gradient).for_each(|(t, g)| *t -= 0.5 * g);
///     }
///     Ok::<_, ()>(theta)
/// })
/// .unwrap();
/// // P(y_0 = 0) = ¾
/// assert!((found.theta[0] - found.theta[1] - 3f64.ln()).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A [`DisjointError`].
pub fn disjoint<E: Send>(
    field: &Field,
    index: &Index,
    data: &FieldData,
    components: &Components,
    params: &ObjectiveParams,
    start: &[f64],
    solve: impl Fn(&mut Composite<'_>, &[f64]) -> Result<Vec<f64>, E> + Sync + Send,
) -> Result<Averaged, DisjointError<E>> {
    let objective = |e| DisjointError::Objective(e);
    components.check(field).map_err(|e| objective(e.into()))?;
    data.check(field, index).map_err(|e| objective(e.into()))?;
    let cutter = Cutter::new(field, index, data);
    let alone = ObjectiveParams { par: if components.len() > 1 { Par::Seq } else { params.par }, ..*params };
    let mut sums = vec![0.0; index.len()];
    let mut taking_part = vec![0u32; index.len()];
    let numbered: Vec<(usize, &Component)> = components.list().iter().enumerate().collect();
    for batch in numbered.chunks(BATCH) {
        let each = params.par.map(batch.to_vec(), |(number, component)| {
            let problem = cutter.cut(component).map_err(objective)?;
            let start: Vec<f64> = problem.parameters.iter().map(|&p| start[p as usize]).collect();
            let Problem { field, index, data, .. } = &problem;
            let one = std::slice::from_ref(&problem.component);
            let theta = match Composite::of(field, index, data, one, &alone) {
                // The component is alone in its problem, and is called by its own number.
                Err(ObjectiveError::TooWide { variables, error, limit, .. }) => {
                    return Err(objective(ObjectiveError::TooWide {
                        component: number,
                        variables,
                        error,
                        limit,
                    }));
                }
                Err(error) => return Err(objective(error)),
                Ok(mut composite) => solve(&mut composite, &start),
            };
            let theta = theta.map_err(|error| DisjointError::Solver { component: number, error })?;
            Ok((problem.parameters, theta))
        });
        for found in each {
            let (parameters, theta) = found?;
            for (&p, &t) in parameters.iter().zip(&theta) {
                sums[p as usize] += t;
                taking_part[p as usize] += 1;
            }
        }
    }
    let average = |((&sum, &n), &start): ((&f64, &u32), &f64)| if n > 0 { sum / f64::from(n) } else { start };
    let theta = sums.iter().zip(&taking_part).zip(start).map(average).collect();
    Ok(Averaged { theta, components: taking_part })
}

/// A component cut out of the whole.
struct Problem {
    field: Field,
    index: Index,
    data: FieldData,
    component: Component,
    /// The whole's number of each parameter.
    parameters: Vec<u32>,
}

struct Cutter<'a> {
    field: &'a Field,
    index: &'a Index,
    data: &'a FieldData,
    starts: Vec<u32>,
    factors: Vec<u32>,
    /// Whether a variable's label is missing in some sample.
    missing: Vec<bool>,
}

impl<'a> Cutter<'a> {
    fn new(field: &'a Field, index: &'a Index, data: &'a FieldData) -> Self {
        let (starts, factors) = field.incidence();
        let mut missing = vec![false; field.variables()];
        for s in 0..data.samples() {
            missing.iter_mut().zip(data.labels(s)).for_each(|(m, &label)| *m |= label == MISSING);
        }
        Self { field, index, data, starts, factors, missing }
    }

    /// What may be free in some sample and is connected to the component, and the factors that mention it; both ascending.
    fn region(&self, component: &Component) -> (Vec<u32>, Vec<u32>) {
        let mut in_b = vec![component.given == Given::Rest; self.field.variables()];
        if let Given::Only(list) = &component.given {
            list.iter().for_each(|&v| in_b[v as usize] = true);
        }
        let mut inside = vec![false; self.field.variables()];
        let mut region = component.variables.clone();
        region.iter().for_each(|&v| inside[v as usize] = true);
        let mut factors = Vec::new();
        let mut next = 0;
        while let Some(&v) = region.get(next) {
            next += 1;
            for &k in &self.factors[self.starts[v as usize] as usize..self.starts[v as usize + 1] as usize] {
                factors.push(k);
                for &u in self.field.scope(k as usize) {
                    let free = self.missing[u as usize] || !in_b[u as usize];
                    if free && !std::mem::replace(&mut inside[u as usize], true) {
                        region.push(u);
                    }
                }
            }
        }
        factors.sort_unstable();
        factors.dedup();
        (region, factors)
    }

    fn cut(&self, component: &Component) -> Result<Problem, ObjectiveError> {
        let (mut variables, factors) = self.region(component);
        variables.extend(factors.iter().flat_map(|&k| self.field.scope(k as usize)));
        variables.sort_unstable();
        variables.dedup();
        let number = |v: u32| variables.binary_search(&v).ok().map(|at| at as u32);
        let mut templates: Vec<usize> = factors.iter().map(|&k| self.field.template(k as usize)).collect();
        templates.sort_unstable();
        templates.dedup();
        let template_of = |k: u32| templates.binary_search(&self.field.template(k as usize)).unwrap_or(0);

        let mut field =
            Field::new(variables.iter().map(|&v| self.field.cards()[v as usize]).collect::<Vec<_>>())?;
        for &t in &templates {
            field.push_template(&self.field.templates()[t])?;
        }
        for &k in &factors {
            let scope: Vec<u32> = self.field.scope(k as usize).iter().filter_map(|&v| number(v)).collect();
            field.push_factor(template_of(k), &scope)?;
        }

        let with_inputs: Vec<u32> =
            factors.iter().copied().filter(|&k| self.data.has_inputs(k as usize)).collect();
        let mut has_inputs = vec![false; templates.len()];
        let mut attributes = vec![vec![0u32]; templates.len()];
        for &k in &with_inputs {
            if !std::mem::replace(&mut has_inputs[template_of(k)], true) {
                attributes[template_of(k)].clear();
            }
        }
        for s in 0..self.data.samples() {
            for &k in &with_inputs {
                let row = self.data.row(s, k as usize).map_or(&[][..], |row| row.attributes);
                attributes[template_of(k)].extend_from_slice(row);
            }
            // Sorted now and then, so that memory follows what is there and not how often.
            for list in &mut attributes {
                if list.len() > 1 << 16 || s + 1 == self.data.samples() {
                    list.sort_unstable();
                    list.dedup();
                }
            }
        }
        let parts: Vec<(usize, &[u32])> =
            templates.iter().copied().zip(attributes.iter().map(Vec::as_slice)).collect();
        let (index, parameters) = self.index.restrict(&parts);

        let mut data = FieldData::new(&field, &has_inputs)?;
        let mut labels = vec![0; variables.len()];
        for s in 0..self.data.samples() {
            let all = self.data.labels(s);
            labels.iter_mut().zip(&variables).for_each(|(label, &v)| *label = all[v as usize]);
            let rows = with_inputs.iter().map(|&k| {
                let list = &attributes[template_of(k)];
                let row = self.data.row(s, k as usize).into_iter().flat_map(|row| row.iter());
                row.filter_map(|(a, value)| Some((list.binary_search(&a).ok()? as u32, value)))
                    .collect::<Vec<_>>()
            });
            data.push(&field, &labels, rows)?;
        }
        let mapped = |list: &[u32]| list.iter().filter_map(|&v| number(v)).collect::<Vec<_>>();
        let given = match &component.given {
            Given::Rest => Given::Rest,
            Given::Only(list) => Given::Only(mapped(list)),
        };
        let component = Component { variables: mapped(&component.variables), given, ..*component };
        Ok(Problem { field, index, data, component, parameters })
    }
}
