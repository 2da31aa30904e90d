//! Every operation of `core::table` and `core::stride` against loops over single entries.

use gibbsite_core::error::TableError;
use gibbsite_core::ids::{Label, VarId};
use gibbsite_core::math::Real;
use gibbsite_core::stride::{self, Axes, Odometer};
use gibbsite_core::table::{
    MAX_SCOPE, Table, TableMut, TableView, condition, configurations, max_out, normalise, product, sum_out,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Arities of the variables that tables here are over.
const VARIABLES: usize = 6;

/// A table as plain data.
#[derive(Clone, Debug)]
struct Plain {
    scope: Vec<u32>,
    cards: Vec<u32>,
    values: Vec<f64>,
}

impl Plain {
    fn ids(&self) -> Vec<VarId> {
        self.scope.iter().map(|&v| VarId(v)).collect()
    }

    fn scalars<T: Real>(&self) -> Vec<T> {
        self.values.iter().map(|&v| T::from_f64(v)).collect()
    }

    /// The entry at a configuration of all variables.
    fn at(&self, x: &[u32]) -> f64 {
        let index = |at, (&v, &card): (&u32, &u32)| at * card as usize + x[v as usize] as usize;
        self.values[self.scope.iter().zip(&self.cards).fold(0, index)]
    }
}

/// All configurations of all variables of which those outside `scope` are 0, `scope`'s last variable fastest.
fn each(scope: &[u32], cards: &[u32]) -> Vec<Vec<u32>> {
    let mut all = vec![vec![0; VARIABLES]];
    for &v in scope {
        all = all
            .into_iter()
            .flat_map(|x| {
                (0..cards[v as usize]).map(move |label| {
                    let mut x = x.clone();
                    x[v as usize] = label;
                    x
                })
            })
            .collect();
    }
    all
}

fn of(scope: &[u32], cards: &[u32]) -> Vec<u32> {
    scope.iter().map(|&v| cards[v as usize]).collect()
}

fn arities() -> impl Strategy<Value = Vec<u32>> {
    vec(prop_oneof![1 => Just(1u32), 4 => Just(2), 3 => Just(3), 1 => Just(4), 1 => Just(8)], VARIABLES)
}

fn scope(most: usize) -> impl Strategy<Value = Vec<u32>> {
    subsequence((0..VARIABLES as u32).collect::<Vec<_>>(), 0..=most).prop_shuffle()
}

fn entry() -> impl Strategy<Value = f64> {
    // Rounded to f32, so that both scalars start from the same numbers.
    let finite = (-40.0..40.0f32).prop_map(f64::from);
    prop_oneof![8 => finite, 1 => Just(f64::NEG_INFINITY)]
}

fn plain(scope: Vec<u32>, cards: &[u32]) -> impl Strategy<Value = Plain> + use<> {
    let cards = of(&scope, cards);
    let size = cards.iter().product::<u32>() as usize;
    vec(entry(), size).prop_map(move |values| Plain { scope: scope.clone(), cards: cards.clone(), values })
}

fn table(most: usize) -> impl Strategy<Value = (Vec<u32>, Plain)> {
    (arities(), scope(most)).prop_flat_map(|(cards, scope)| (Just(cards.clone()), plain(scope, &cards)))
}

fn check_product<T: Real>(cards: &[u32], a: &Plain, b: &Plain, out: &[u32]) -> Result<(), TestCaseError> {
    let (ids, out_cards) = (out.iter().map(|&v| VarId(v)).collect::<Vec<_>>(), of(out, cards));
    let (ia, ib, va, vb) = (a.ids(), b.ids(), a.scalars::<T>(), b.scalars::<T>());
    let a_view = TableView::new(&ia, &a.cards, &va).unwrap();
    let b_view = TableView::new(&ib, &b.cards, &vb).unwrap();
    let mut memory = vec![T::from_f64(7.0); configurations(&out_cards).unwrap()];
    product(&a_view, &b_view, &mut TableMut::new(&ids, &out_cards, &mut memory).unwrap()).unwrap();
    for (x, &found) in each(out, cards).iter().zip(&memory) {
        // The same single addition: equal to the bit.
        prop_assert_eq!(found, T::from_f64(a.at(x)) + T::from_f64(b.at(x)));
    }
    Ok(())
}

fn check_reductions<T: Real>(
    cards: &[u32],
    a: &Plain,
    keep: &[u32],
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let (ids, keep_cards) = (keep.iter().map(|&v| VarId(v)).collect::<Vec<_>>(), of(keep, cards));
    let (ia, va) = (a.ids(), a.scalars::<T>());
    let view = TableView::new(&ia, &a.cards, &va).unwrap();
    let size = configurations(&keep_cards).unwrap();
    let (mut sums, mut maxima) = (vec![T::from_f64(7.0); size], vec![T::from_f64(7.0); size]);
    sum_out(&view, &mut TableMut::new(&ids, &keep_cards, &mut sums).unwrap()).unwrap();
    max_out(&view, &mut TableMut::new(&ids, &keep_cards, &mut maxima).unwrap()).unwrap();
    let all = each(&a.scope, cards);
    for ((x, &sum), &maximum) in each(keep, cards).iter().zip(&sums).zip(&maxima) {
        let agrees = |y: &&Vec<u32>| keep.iter().all(|&v| y[v as usize] == x[v as usize]);
        let over: Vec<f64> = all.iter().filter(agrees).map(|y| a.at(y)).collect();
        let top = over.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        prop_assert_eq!(Real::to_f64(maximum), top);
        if top == f64::NEG_INFINITY {
            prop_assert_eq!(Real::to_f64(sum), top);
        } else {
            let expected = top + over.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
            let found = Real::to_f64(sum);
            prop_assert!(
                (found - expected).abs() <= tolerance * expected.abs().max(1.0),
                "{found} {expected}"
            );
        }
    }
    let total = Real::to_f64(view.log_sum());
    let mut normalised = va.clone();
    let found = Real::to_f64(normalise(&mut normalised));
    prop_assert_eq!(found, total);
    let top = a.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        prop_assert_eq!(found, top);
        prop_assert_eq!(normalised, va);
    } else {
        let expected = top + a.values.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
        prop_assert!((total - expected).abs() <= tolerance * expected.abs().max(1.0));
        let mass: f64 = normalised.iter().map(|&v| Real::to_f64(v).exp()).sum();
        prop_assert!((mass - 1.0).abs() <= 40.0 * tolerance, "{mass}");
    }
    Ok(())
}

fn check_condition<T: Real>(
    cards: &[u32],
    a: &Plain,
    seen: &[(u32, u32)],
    out: &[u32],
) -> Result<(), TestCaseError> {
    let (ids, out_cards) = (out.iter().map(|&v| VarId(v)).collect::<Vec<_>>(), of(out, cards));
    let (ia, va) = (a.ids(), a.scalars::<T>());
    let view = TableView::new(&ia, &a.cards, &va).unwrap();
    let mut memory = vec![T::from_f64(7.0); configurations(&out_cards).unwrap()];
    let observed: Vec<_> = seen.iter().map(|&(v, l)| (VarId(v), Label(l))).collect();
    condition(&view, &observed, &mut TableMut::new(&ids, &out_cards, &mut memory).unwrap()).unwrap();
    for (x, &found) in each(out, cards).iter().zip(&memory) {
        let mut x = x.clone();
        for &(v, label) in seen {
            x[v as usize] = label;
        }
        prop_assert_eq!(Real::to_f64(found), a.at(&x));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn product_broadcasts_over_any_order(
        (cards, a, b, out) in (arities(), scope(4), scope(4), scope(2)).prop_flat_map(
            |(cards, a, b, more)| {
                let mut union = a.clone();
                union.extend(b.iter().chain(&more));
                union.sort_unstable();
                union.dedup();
                (Just(cards.clone()), plain(a, &cards), plain(b, &cards), Just(union).prop_shuffle())
            },
        )
    ) {
        check_product::<f64>(&cards, &a, &b, &out)?;
        check_product::<f32>(&cards, &a, &b, &out)?;
    }

    #[test]
    fn sum_out_and_max_out_keep_any_order(
        (cards, a, keep) in table(5).prop_flat_map(|(cards, a)| {
            let keep = subsequence(a.scope.clone(), 0..=a.scope.len()).prop_shuffle();
            (Just(cards), Just(a), keep)
        })
    ) {
        check_reductions::<f64>(&cards, &a, &keep, 1e-13)?;
        check_reductions::<f32>(&cards, &a, &keep, 1e-5)?;
    }

    #[test]
    fn condition_fixes_any_variables(
        (cards, a, seen, out) in (table(5), any::<[u32; VARIABLES]>(), scope(VARIABLES)).prop_flat_map(
            |((cards, a), draws, seen)| {
                // Some of the observed variables are not in the table.
                let out: Vec<u32> = a.scope.iter().copied().filter(|v| !seen.contains(v)).collect();
                let label = |v: u32| (v, draws[v as usize] % cards[v as usize]);
                let seen: Vec<_> = seen.into_iter().map(label).collect();
                (Just(cards), Just(a), Just(seen), Just(out).prop_shuffle())
            },
        )
    ) {
        check_condition::<f64>(&cards, &a, &seen, &out)?;
        check_condition::<f32>(&cards, &a, &seen, &out)?;
    }

    /// The owned table does what the views do, or says that it has no room.
    #[test]
    fn owned_tables_agree_with_views((cards, a) in table(3), (b_scope, keep_count) in (scope(3), 0..4usize)) {
        let mut t = Table::<f64, 4, 512>::new(&a.ids(), &a.cards).unwrap_or_else(|e| panic!("{e}: {a:?}"));
        prop_assert!(t.values().iter().all(|&v| v == 0.0));
        t.values_mut().copy_from_slice(&a.values);
        prop_assert_eq!(t.view().values(), a.values.as_slice());
        let b_cards = of(&b_scope, &cards);
        let b_ids: Vec<_> = b_scope.iter().map(|&v| VarId(v)).collect();
        if let Ok(mut u) = Table::<f64, 4, 64>::new(&b_ids, &b_cards) {
            for (i, v) in u.values_mut().iter_mut().enumerate() {
                *v = i as f64;
            }
            let mut union = a.scope.clone();
            union.extend(b_scope.iter().filter(|v| !a.scope.contains(v)));
            let size = configurations(&of(&union, &cards)).unwrap();
            match t.product(&u) {
                Ok(p) => {
                    let b = Plain { scope: b_scope.clone(), cards: b_cards, values: u.values().to_vec() };
                    prop_assert_eq!(p.view().scope(), union.iter().map(|&v| VarId(v)).collect::<Vec<_>>());
                    for (x, &found) in each(&union, &cards).iter().zip(p.values()) {
                        prop_assert_eq!(found, a.at(x) + b.at(x));
                    }
                }
                Err(e) => prop_assert!(
                    (e == TableError::ScopeTooLong && union.len() > 4) || (e == TableError::Length && size > 512)
                ),
            }
        }
        let keep: Vec<_> = a.ids().into_iter().rev().take(keep_count).collect();
        let keep_cards: Vec<_> = a.cards.iter().rev().copied().take(keep_count).collect();
        let mut memory = vec![0.0; configurations(&keep_cards).unwrap()];
        sum_out(&t.view(), &mut TableMut::new(&keep, &keep_cards, &mut memory).unwrap()).unwrap();
        let summed = t.sum_out(&keep).unwrap();
        prop_assert_eq!(summed.values(), memory.as_slice());
        max_out(&t.view(), &mut TableMut::new(&keep, &keep_cards, &mut memory).unwrap()).unwrap();
        let maximal = t.max_out(&keep).unwrap();
        prop_assert_eq!(maximal.values(), memory.as_slice());
        let target = t.target();
        prop_assert_eq!(target.view().values(), a.values.as_slice());
    }
}

// --- operands that do not fit ---------------------------------------------------------------------------

const X: VarId = VarId(0);
const Y: VarId = VarId(1);

#[test]
fn views_check_their_parts() {
    let values = [0.0f64; 6];
    assert_eq!(TableView::new(&[X, Y], &[2, 3], &values[..5]).unwrap_err(), TableError::Length);
    assert_eq!(TableView::new(&[], &[], &values).unwrap_err(), TableError::Length);
    assert_eq!(TableView::new(&[X, X], &[2, 3], &values).unwrap_err(), TableError::RepeatedVariable(X));
    assert_eq!(TableView::new(&[X, Y], &[0, 3], &values[..0]).unwrap_err(), TableError::Arity(X));
    assert_eq!(TableView::new(&[X], &[2, 3], &values).unwrap_err(), TableError::ScopeTooLong);
    let many: Vec<_> = (0..=MAX_SCOPE as u32).map(VarId).collect();
    let ones = vec![1; many.len()];
    assert_eq!(TableView::new(&many, &ones, &values[..1]).unwrap_err(), TableError::ScopeTooLong);
    assert!(TableView::new(&many[1..], &ones[1..], &values[..1]).is_ok());
    let huge = [u32::MAX; 3];
    assert_eq!(TableView::new(&[X, Y, VarId(2)], &huge, &values).unwrap_err(), TableError::Length);
    let mut memory = [0.0f32; 4];
    assert_eq!(TableMut::new(&[X, Y], &[2, 3], &mut memory).unwrap_err(), TableError::Length);
    assert_eq!(TableMut::new(&[Y, Y], &[2, 2], &mut memory).unwrap_err(), TableError::RepeatedVariable(Y));
}

#[test]
fn operations_check_their_operands() {
    let (sx, sy, sxy) = ([X], [Y], [X, Y]);
    let a = TableView::new(&sx, &[2], &[1.0, 2.0]).unwrap();
    let b = TableView::new(&sy, &[3], &[1.0, 2.0, 3.0]).unwrap();
    let c = TableView::new(&sxy, &[2, 3], &[0.0; 6]).unwrap();
    let (mut two, mut three, mut four, mut six) = ([7.0; 2], [7.0; 3], [7.0; 4], [7.0; 6]);

    let mut out = TableMut::new(&sx, &[2], &mut two).unwrap();
    assert_eq!(product(&a, &b, &mut out), Err(TableError::MissingVariable(Y)));
    assert_eq!(sum_out(&b, &mut out), Err(TableError::MissingVariable(X)));
    assert_eq!(max_out(&b, &mut out), Err(TableError::MissingVariable(X)));
    assert_eq!(condition(&c, &[], &mut out), Err(TableError::MissingVariable(Y)));
    assert_eq!(condition(&c, &[(Y, Label(3))], &mut out), Err(TableError::Label(Y)));
    assert_eq!(condition(&c, &[(X, Label(0)), (Y, Label(0))], &mut out), Err(TableError::Label(X)));
    assert_eq!(condition(&b, &[(Y, Label(0))], &mut out), Err(TableError::MissingVariable(X)));

    let mut out = TableMut::new(&sxy, &[2, 2], &mut four).unwrap();
    assert_eq!(product(&a, &b, &mut out), Err(TableError::Arity(Y)));
    assert_eq!(sum_out(&c, &mut out), Err(TableError::Arity(Y)));
    assert_eq!(condition(&c, &[], &mut out), Err(TableError::Arity(Y)));

    let mut out = TableMut::new(&sx, &[3], &mut three).unwrap();
    assert_eq!(max_out(&c, &mut out), Err(TableError::Arity(X)));
    assert_eq!(condition(&c, &[(Y, Label(0))], &mut out), Err(TableError::Arity(X)));

    // Nothing was written until an operation fits.
    assert!(two.iter().chain(&three).chain(&four).all(|&v| v == 7.0));
    let mut out = TableMut::new(&sxy, &[2, 3], &mut six).unwrap();
    assert_eq!(product(&a, &b, &mut out), Ok(()));
    assert_eq!(six, [2.0, 3.0, 4.0, 3.0, 4.0, 5.0]);
}

#[test]
fn owned_tables_have_bounds() {
    assert_eq!(Table::<f32, 2, 4>::new(&[X, Y], &[2, 3]).unwrap_err(), TableError::Length);
    assert_eq!(Table::<f32, 1, 8>::new(&[X, Y], &[2, 3]).unwrap_err(), TableError::ScopeTooLong);
    assert_eq!(Table::<f32, 2, 8>::new(&[X, X], &[2, 3]).unwrap_err(), TableError::RepeatedVariable(X));
    assert_eq!(Table::<f32, 2, 8>::new(&[X, Y], &[2]).unwrap_err(), TableError::ScopeTooLong);
    assert_eq!(Table::<f32, 2, 8>::new(&[X, Y], &[0, 2]).unwrap_err(), TableError::Arity(X));
    assert_eq!(Table::<f32, 2, 8>::new(&[X, Y], &[u32::MAX; 2]).unwrap_err(), TableError::Length);
    let t = Table::<f64, 2, 8>::new(&[X, Y], &[2, 3]).unwrap();
    let u = Table::<f64, 2, 8>::new(&[Y], &[2]).unwrap();
    assert_eq!(t.product(&u).unwrap_err(), TableError::Arity(Y));
    let u = Table::<f64, 2, 8>::new(&[VarId(2)], &[1]).unwrap();
    assert_eq!(t.product(&u).unwrap_err(), TableError::ScopeTooLong);
    assert_eq!(t.sum_out(&[VarId(2)]).unwrap_err(), TableError::MissingVariable(VarId(2)));
    assert_eq!(t.max_out(&[X, X]).unwrap_err(), TableError::RepeatedVariable(X));
}

// --- stride patterns ------------------------------------------------------------------------------------

/// The smaller table's position under each entry of the larger one.
fn positions(axes: &[[u32; 2]]) -> Vec<usize> {
    let mut all = vec![0];
    for &[count, stride] in axes {
        all = all.iter().flat_map(|&at| (0..count).map(move |i| at + (i * stride) as usize)).collect();
    }
    all
}

/// Axes as a table's variables give them: each moves through a smaller table's layout, or is absent from it.
fn table_axes() -> impl Strategy<Value = Vec<[u32; 2]>> {
    let counts = vec((select(vec![1u32, 2, 2, 3, 4, 5, 8, 16]), any::<bool>()), 0..=5);
    counts.prop_flat_map(|list| {
        let present: Vec<usize> = (0..list.len()).filter(|&i| list[i].1).collect();
        Just(present).prop_shuffle().prop_map(move |layout| {
            let mut axes: Vec<[u32; 2]> = list.iter().map(|&(count, _)| [count, 0]).collect();
            let mut stride = 1;
            for &i in &layout {
                axes[i][1] = stride;
                stride *= list[i].0;
            }
            while axes.iter().map(|a| a[0]).product::<u32>() > 20_000 {
                axes.pop();
            }
            axes
        })
    })
}

/// Any axes, also such that lie over each other.
fn any_axes() -> impl Strategy<Value = Vec<[u32; 2]>> {
    let count = select(vec![1u32, 2, 3, 4, 8, 16]);
    let stride = select(vec![0u32, 0, 1, 1, 2, 3, 4, 5, 8, 16, 32]);
    vec((count, stride).prop_map(|(n, s)| [n, s]), 0..=4)
}

fn check_pattern(raw: &[[u32; 2]]) -> Result<(), TestCaseError> {
    let mut axes = Axes::new();
    for &[count, stride] in raw {
        prop_assert!(stride::push(&mut axes, count, stride));
    }
    prop_assert!(axes.iter().all(|&[count, _]| count > 1));
    let positions = positions(raw);
    let needed = positions.iter().max().unwrap() + 1;
    prop_assert_eq!(stride::extent(raw), Some((positions.len(), needed)));
    prop_assert_eq!(stride::extent(&axes), Some((positions.len(), needed)));

    let mut at = Odometer::default();
    for &expected in &positions {
        prop_assert_eq!(at.offset, expected);
        at.step(&axes);
    }
    prop_assert_eq!(at.offset, 0, "the odometer comes round");

    // Integers: no rounding, so any order of additions gives the same. The smaller table is exactly long enough.
    let small: Vec<i64> = (0..needed as i64).map(|i| i * i + 1).collect();
    let big: Vec<i64> = (0..positions.len() as i64).map(|i| 3 * i - 7).collect();
    let mut spread = big.clone();
    stride::spread(&axes, &mut spread, &small, |b, s| *b = b.wrapping_mul(s));
    let expected: Vec<i64> = big.iter().zip(&positions).map(|(b, &p)| b.wrapping_mul(small[p])).collect();
    prop_assert_eq!(&spread, &expected);
    let mut copied = big.clone();
    stride::spread(&axes, &mut copied, &small, |b, s| *b = s);
    prop_assert_eq!(&copied, &positions.iter().map(|&p| small[p]).collect::<Vec<_>>());

    let (mut sums, mut maxima) = (small.clone(), small.clone());
    stride::fold(&axes, &big, &mut sums, |s, b| s + b);
    stride::fold(&axes, &big, &mut maxima, |s, b| s.max(b));
    let (mut naive_sums, mut naive_maxima) = (small.clone(), small);
    for (&b, &p) in big.iter().zip(&positions) {
        naive_sums[p] += b;
        naive_maxima[p] = naive_maxima[p].max(b);
    }
    prop_assert_eq!(sums, naive_sums);
    prop_assert_eq!(maxima, naive_maxima);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn patterns_of_tables_match_index_loops(axes in table_axes()) {
        check_pattern(&axes)?;
    }

    #[test]
    fn any_pattern_matches_index_loops(axes in any_axes()) {
        check_pattern(&axes)?;
    }
}

#[test]
fn patterns_have_bounds() {
    assert_eq!(stride::extent(&[]), Some((1, 1)));
    assert_eq!(stride::extent(&[[0, 1]]), None);
    assert_eq!(stride::extent(&[[2, 0], [0, 0]]), None);
    assert_eq!(stride::extent(&[[u32::MAX, 1]; 3]), None, "overflow");
    assert_eq!(stride::extent(&[[1, 0]; MAX_SCOPE + 1]), None, "too many axes");
    let mut axes = Axes::new();
    for i in 0..MAX_SCOPE {
        assert!(stride::push(&mut axes, 2, [1, 5][i % 2]));
    }
    assert!(!stride::push(&mut axes, 2, 1));
    assert!(stride::push(&mut axes, 1, 1), "an axis of length 1 takes no room");
    assert_eq!(axes.len(), MAX_SCOPE);
}
