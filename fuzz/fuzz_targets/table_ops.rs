//! Table operations on arbitrary scopes, arities and values: refused exactly when they should be, and otherwise
//! equal to a loop over all configurations that looks every entry up by hand.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite_core::ids::{Label, VarId};
use gibbsite_core::table::{Table, TableMut, TableView, condition, max_out, normalise, product, sum_out};
use gibbsite_fuzz::log_potential;
use libfuzzer_sys::fuzz_target;

#[derive(Clone, Debug)]
struct Operand {
    scope: Vec<VarId>,
    cards: Vec<u32>,
    values: Vec<f64>,
}

impl Operand {
    fn any(u: &mut Unstructured<'_>, common: &[u32; 6]) -> Result<Self> {
        let len = if u.ratio(31, 32)? { u.int_in_range(0..=5)? } else { u.int_in_range(30..=34)? };
        let scope: Vec<VarId> = (0..len).map(|_| Ok(VarId(u.int_in_range(0..=5)?))).collect::<Result<_>>()?;
        // Mostly the arities that all agree on.
        let mut cards = Vec::new();
        for v in &scope {
            cards.push(if u.ratio(31, 32)? { common[v.index()] } else { u.int_in_range(0..=3)? });
        }
        let size = cards.iter().try_fold(1usize, |n, &c| n.checked_mul(c as usize)).unwrap_or(0).min(4096);
        let len = if u.ratio(31, 32)? { size } else { u.int_in_range(0..=70)? };
        let values = (0..len).map(|_| log_potential(u, 1e6)).collect::<Result<_>>()?;
        Ok(Self { scope, cards, values })
    }

    fn legal(&self) -> bool {
        let once = (0..self.scope.len()).all(|i| !self.scope[..i].contains(&self.scope[i]));
        let size = self.cards.iter().try_fold(1usize, |n, &c| n.checked_mul(c as usize));
        self.scope.len() <= 32 && once && !self.cards.contains(&0) && size == Some(self.values.len())
    }

    fn card(&self, v: VarId) -> Option<u32> {
        self.scope.iter().position(|&u| u == v).map(|at| self.cards[at])
    }

    /// Whether every variable of `self` is in `other`, with the same arity.
    fn within(&self, other: &Operand) -> bool {
        self.scope.iter().zip(&self.cards).all(|(&v, &card)| other.card(v) == Some(card))
    }

    /// Labels of the variables `0..6` at entry `at`.
    fn labels(&self, mut at: usize) -> [usize; 6] {
        let mut labels = [0; 6];
        for (v, &card) in self.scope.iter().zip(&self.cards).rev() {
            labels[v.index()] = at % card as usize;
            at /= card as usize;
        }
        labels
    }

    fn value(&self, labels: &[usize; 6]) -> f64 {
        let mut at = 0;
        for (v, &card) in self.scope.iter().zip(&self.cards) {
            at = at * card as usize + labels[v.index()];
        }
        self.values[at]
    }

    fn target(&mut self) -> TableMut<'_, f64> {
        TableMut::new(&self.scope, &self.cards, &mut self.values).expect("legal")
    }
}

fn check(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    let mut common = [0; 6];
    for card in &mut common {
        *card = u.int_in_range(1..=4)?;
    }
    let (a, b, mut out) = (Operand::any(u, &common)?, Operand::any(u, &common)?, Operand::any(u, &common)?);
    for operand in [&a, &b, &out] {
        let view = TableView::new(&operand.scope, &operand.cards, &operand.values);
        assert_eq!(view.is_ok(), operand.legal(), "{operand:?}");
    }
    if !(a.legal() && b.legal() && out.legal()) {
        return Ok(());
    }
    let view_a = TableView::new(&a.scope, &a.cards, &a.values).expect("legal");
    let view_b = TableView::new(&b.scope, &b.cards, &b.values).expect("legal");

    let done = product(&view_a, &view_b, &mut out.target());
    assert_eq!(done.is_ok(), a.within(&out) && b.within(&out));
    if done.is_ok() {
        for (at, &found) in out.values.iter().enumerate() {
            let labels = out.labels(at);
            assert_eq!(found, a.value(&labels) + b.value(&labels));
        }
    }

    let done = max_out(&view_a, &mut out.target());
    assert_eq!(done.is_ok(), out.within(&a));
    if done.is_ok() {
        assert_eq!(out.values, reduced(&a, &out, |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
        sum_out(&view_a, &mut out.target()).expect("the same scopes as for max_out");
        for (&found, expected) in out.values.iter().zip(reduced(&a, &out, log_sum)) {
            assert!(close(found, expected), "{found} is not {expected}");
        }
        let before = out.values.clone();
        let log_z = normalise(&mut out.values);
        assert!(close(log_z, log_sum(&before)));
        if log_z > f64::NEG_INFINITY {
            assert!(log_sum(&out.values).abs() < 1e-8, "normalised");
        }
    }

    let observed: Vec<(VarId, Label)> = (0..u.int_in_range(0..=3)?)
        .map(|_| Ok((VarId(u.int_in_range(0..=7)?), Label(u.int_in_range(0..=4)?))))
        .collect::<Result<_>>()?;
    let contradictory = observed.iter().any(|a| observed.iter().any(|b| a.0 == b.0 && a.1 != b.1));
    let label_of = |v: VarId| observed.iter().find(|o| o.0 == v).map(|o| o.1);
    let fits = a.scope.iter().zip(&a.cards).all(|(&v, &card)| match label_of(v) {
        Some(label) => label.0 < card && out.card(v).is_none(),
        None => out.card(v) == Some(card),
    }) && out.scope.iter().all(|&v| a.card(v).is_some());
    let contradicted =
        observed.iter().any(|(v, label)| observed.iter().any(|(u, other)| u == v && other != label));
    let fits = fits && !contradicted;
    let done = condition(&view_a, &observed, &mut out.target());
    assert_eq!(done.is_ok(), fits && !contradictory);
    if done.is_ok() {
        for (at, &found) in out.values.iter().enumerate() {
            let mut labels = out.labels(at);
            for &v in &a.scope {
                if let Some(label) = label_of(v) {
                    labels[v.index()] = label.index();
                }
            }
            assert_eq!(found, a.value(&labels));
        }
    }

    // The owned table says the same as the borrowed ones, within its capacity.
    if let (Ok(mut x), Ok(mut y)) =
        (Table::<f64, 4, 64>::new(&a.scope, &a.cards), Table::<f64, 4, 64>::new(&b.scope, &b.cards))
    {
        x.values_mut().copy_from_slice(&a.values);
        y.values_mut().copy_from_slice(&b.values);
        if let Ok(both) = x.product(&y) {
            let view = both.view();
            let all = Operand {
                scope: view.scope().to_vec(),
                cards: view.cards().to_vec(),
                values: view.values().to_vec(),
            };
            for (at, &found) in all.values.iter().enumerate() {
                let labels = all.labels(at);
                assert_eq!(found, a.value(&labels) + b.value(&labels));
            }
        }
        let _ = (x.sum_out(&b.scope), x.max_out(&b.scope));
    }
    Ok(())
}

/// For each entry of `out`: `fold` of the entries of `a` that lie over it.
fn reduced(a: &Operand, out: &Operand, fold: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut parts = vec![vec![]; out.values.len()];
    for (at, &value) in a.values.iter().enumerate() {
        let labels = a.labels(at);
        let place =
            out.scope.iter().zip(&out.cards).fold(0, |p, (v, &card)| p * card as usize + labels[v.index()]);
        parts[place].push(value);
    }
    parts.iter().map(|part| fold(part)).collect()
}

fn log_sum(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY { top } else { top + x.iter().map(|v| (v - top).exp()).sum::<f64>().ln() }
}

fn close(found: f64, expected: f64) -> bool {
    found == expected || (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
}

fuzz_target!(|bytes: &[u8]| {
    // An error here only says that the bytes ran out.
    let _ = check(bytes);
});
