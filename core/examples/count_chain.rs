//! Forward-backward twice, for an instruction counter: core's, and the same recurrences written by hand as fast as we know how, with
//! the same calls of `exp` and `log`. `tests/count` runs both under callgrind and compares.
//!
//! `count_chain ours|by_hand T L`

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gibbsite_core::infer::chain::{Chain, Transitions};

/// Buffers of the hand-written version.
struct Buffers {
    alpha: Vec<f64>,
    beta: Vec<f64>,
    singles: Vec<f64>,
    states: Vec<f64>,
    transitions: Vec<f64>,
    weighted: Vec<f64>,
}

fn maximum(x: &[f64]) -> f64 {
    x.iter().fold(f64::NEG_INFINITY, |m, &x| if x > m { x } else { m })
}

/// Scaled forward-backward with row slices, the weighted row hoisted out of the backward loop, dot products in four lanes. It
/// has none of core's protection against scores that leave the floating-point range.
#[inline(never)]
fn by_hand(labels: usize, scores: &[f64], table: &[f64], b: &mut Buffers) -> f64 {
    let positions = scores.len() / labels;
    let top = maximum(table);
    for (e, &x) in b.transitions.iter_mut().zip(table) {
        *e = libm::exp(x - top);
    }
    let mut log_z = top * (positions - 1) as f64;
    for t in 0..positions {
        let row = &scores[t * labels..(t + 1) * labels];
        let top = maximum(row);
        let states = &mut b.states[t * labels..(t + 1) * labels];
        for (e, &x) in states.iter_mut().zip(row) {
            *e = libm::exp(x - top);
        }
        let (before, now) = b.alpha.split_at_mut(t * labels);
        let now = &mut now[..labels];
        if t == 0 {
            now.copy_from_slice(states);
        } else {
            now.fill(0.0);
            for (&x, row) in before[(t - 1) * labels..].iter().zip(b.transitions.chunks_exact(labels)) {
                for (n, &r) in now.iter_mut().zip(row) {
                    *n += x * r;
                }
            }
            for (n, &e) in now.iter_mut().zip(&*states) {
                *n *= e;
            }
        }
        let sum: f64 = now.iter().sum();
        for x in now.iter_mut() {
            *x *= 1.0 / sum;
        }
        log_z += top + libm::log(sum);
    }
    b.beta[(positions - 1) * labels..].fill(1.0);
    for t in (0..positions - 1).rev() {
        let (now, next) = b.beta[t * labels..(t + 2) * labels].split_at_mut(labels);
        for ((w, &n), &e) in b.weighted.iter_mut().zip(&*next).zip(&b.states[(t + 1) * labels..]) {
            *w = n * e;
        }
        let mut total = 0.0;
        for (n, row) in now.iter_mut().zip(b.transitions.chunks_exact(labels)) {
            let ((r4, r_rest), (w4, w_rest)) = (row.as_chunks::<4>(), b.weighted.as_chunks::<4>());
            let mut lanes = [0.0; 4];
            for (r, w) in r4.iter().zip(w4) {
                for (lane, (r, w)) in lanes.iter_mut().zip(r.iter().zip(w)) {
                    *lane += r * w;
                }
            }
            let rest: f64 = r_rest.iter().zip(w_rest).map(|(r, w)| r * w).sum();
            *n = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest;
            total += *n;
        }
        for x in now.iter_mut() {
            *x *= 1.0 / total;
        }
    }
    for ((s, &a), &b) in b.singles.iter_mut().zip(&b.alpha).zip(&b.beta) {
        *s = a * b;
    }
    for row in b.singles.chunks_exact_mut(labels) {
        let sum: f64 = row.iter().sum();
        for x in row {
            *x *= 1.0 / sum;
        }
    }
    log_z
}

#[inline(never)]
fn ours(labels: usize, scores: &[f64], table: &[f64], singles: &mut [f64], memory: &mut [f64]) -> f64 {
    let chain = Chain::new(labels, scores, Transitions::Shared(table)).expect("finite scores");
    chain.forward_backward(singles, None, memory).expect("positive probability")
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [which, positions, labels] = args.as_slice() else { panic!("usage: count_chain ours|by_hand T L") };
    let (t, l): (usize, usize) = (positions.parse().expect("T"), labels.parse().expect("L"));
    let mut state = 88_172_645_463_325_252u64;
    let mut random = || {
        // xorshift64, scores from -3 to 3
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 * 6.0 - 3.0
    };
    let scores: Vec<f64> = (0..t * l).map(|_| random()).collect();
    let table: Vec<f64> = (0..l * l).map(|_| random()).collect();
    let log_z = if which == "ours" {
        let mut memory = vec![1.0; Chain::<f64>::forward_backward_len(t, l)];
        ours(l, &scores, &table, &mut vec![1.0; t * l], &mut memory)
    } else {
        let rows = || vec![1.0; t * l];
        let (alpha, beta, singles, states) = (rows(), rows(), rows(), rows());
        let (transitions, weighted) = (vec![1.0; l * l], vec![1.0; l]);
        by_hand(l, &scores, &table, &mut Buffers { alpha, beta, singles, states, transitions, weighted })
    };
    println!("{log_z}");
}
