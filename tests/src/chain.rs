//! Exact answers for binary chains too long to enumerate: forward-backward in log space, as plain as it comes.

use crate::oracle::{Exact, Model};

/// Log-potentials of a pair of neighbours: `step[a][b]`.
pub type Step = [[f64; 2]; 2];

/// Log-sum-exp of a few numbers, or their maximum.
pub fn combine(values: &[f64], max: bool) -> f64 {
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max || top == f64::NEG_INFINITY {
        return top;
    }
    top + values.iter().map(|v| (v - top).exp()).sum::<f64>().ln()
}

/// `out(b) = ⊕_a from(a) + step(a, b)`.
pub fn advance(from: [f64; 2], step: Step, max: bool) -> [f64; 2] {
    [0, 1].map(|b| combine(&[from[0] + step[0][b], from[1] + step[1][b]], max))
}

/// Variables `0, 1, …`, each step over one and the next; the last step closes a cycle if there are as many.
pub fn model(variables: usize, steps: &[Step]) -> Model {
    let mut model = Model { cards: vec![2; variables], ..Model::default() };
    for (i, step) in steps.iter().enumerate() {
        model.push(&[i as u32, (i + 1) as u32 % variables as u32], step.concat());
    }
    model
}

/// All answers for the open chain but factor marginals; `None` if it is impossible.
pub fn exact(steps: &[Step]) -> Option<Exact> {
    let (mut forward, mut best) = (vec![[0.0; 2]], [0.0; 2]);
    for (v, &step) in steps.iter().enumerate() {
        forward.push(advance(forward[v], step, false));
        best = advance(best, step, true);
    }
    let log_z = combine(&forward[steps.len()], false);
    if log_z == f64::NEG_INFINITY {
        return None;
    }
    let mut marginals = vec![0.0; 2 * forward.len()];
    let mut backward = [0.0; 2];
    for v in (0..forward.len()).rev() {
        let both = [forward[v][0] + backward[0], forward[v][1] + backward[1]];
        let total = combine(&both, false);
        marginals[2 * v] = (both[0] - total).exp();
        marginals[2 * v + 1] = (both[1] - total).exp();
        if v > 0 {
            let s = steps[v - 1];
            backward = advance(backward, [[s[0][0], s[1][0]], [s[0][1], s[1][1]]], false);
            // What is common to both labels does not matter, and would only cost digits.
            let top = combine(&backward, true);
            backward = backward.map(|b| b - top);
        }
    }
    Some(Exact { log_z, marginals, factor_marginals: Vec::new(), best: combine(&best, true) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{close, distance};

    #[test]
    fn agrees_with_enumeration() {
        let none = f64::NEG_INFINITY;
        let steps = [[[0.3, -1.0], [2.0, none]], [[0.0, 0.5], [700.0, -800.0]], [[none, 1.0], [-0.2, 0.1]]];
        let (chain, all) = (exact(&steps).unwrap(), model(4, &steps).exact(&[]).unwrap());
        assert!(close(chain.log_z, all.log_z, 1e-14) && close(chain.best, all.best, 1e-14));
        assert!(distance(&chain.marginals, &all.marginals) < 1e-12);
        assert!(exact(&[[[none; 2]; 2]]).is_none());
    }
}
