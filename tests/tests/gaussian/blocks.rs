//! Fits by blocks, within a budget of memory.

use super::{SOLVERS, data, dense, exact, rows, solve, textbook};
use gibbsite::linalg::Dense;
use gibbsite::objective::gaussian::Penalties;
use gibbsite::par::Par;
use gibbsite::solver::monitor::Stop;
use gibbsite::solver::newton_blocks::{BlockData, BlockError, BlockParams, BlockSolution, minimize};
use gibbsite::sparse::Sparse;
use gibbsite_tests::sgcrf::Truth;
use proptest::prelude::*;

fn by_blocks(
    x: &Dense,
    y: &Dense,
    penalties: Penalties,
    tolerance: f64,
    bytes: u64,
    par: Par,
) -> Result<BlockSolution, BlockError> {
    let params = BlockParams {
        penalties,
        tolerance: tolerance * penalties.lambda.max(penalties.theta),
        max_iterations: 300,
        bytes,
    };
    par.run(|par| minimize(BlockData { x, y, par }, None, &params, None))
}

/// The least budget that is enough, within a tenth, and the solution with it.
fn tightest(x: &Dense, y: &Dense, penalties: Penalties, tolerance: f64) -> (u64, BlockSolution) {
    let mut bytes = 1 << 10;
    loop {
        match by_blocks(x, y, penalties, tolerance, bytes, Par::Seq) {
            Ok(found) => return (bytes, found),
            Err(BlockError::Memory { need }) => {
                assert!(need > bytes, "{need} {bytes}");
                bytes = need.max(bytes + bytes / 10);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// With as little memory as is possible it ends where the dense solver does, and the textbook says that it is an optimum.
    #[test]
    fn the_least_memory_leads_to_the_optimum(
        seed: u64, m in 6usize..40, n in 0usize..12, p in 1usize..12,
        pairs in 0.05f64..0.8, theta in 0.05f64..0.8, diagonal: bool,
    ) {
        let (x, y) = data(seed, m, n, p);
        let mut book = textbook(x, y, n, pairs, theta);
        book.diagonal = if diagonal { pairs } else { 0.0 };
        let whole = solve(&book, &exact(SOLVERS[0]));
        let penalties = Penalties { lambda: pairs, theta, diagonal };
        let (_, found) = tightest(&dense(&book.x, n), &dense(&book.y, p), penalties, 1e-8);
        prop_assert_eq!(found.info.stop, Stop::Tolerance, "{}", found.info.violation);
        let (l, t) = (rows(&found.lambda), rows(&found.theta));
        prop_assert!(book.violation(&l, &t) <= 1.01e-8 * pairs.max(theta) + 1e-11, "{}", book.violation(&l, &t));
        let own = book.objective(&l, &t);
        prop_assert!((own - found.info.objective).abs() <= 1e-10 * (1.0 + own.abs()));
        prop_assert!((own - whole.objective).abs() <= 1e-8 * (1.0 + own.abs()), "{} {}", own, whole.objective);
    }
}

/// A chain: every output has its neighbours and an input.
fn chain(m: usize, p: usize, seed: u64) -> (Dense, Dense) {
    Truth::chain(p).sample(m, seed)
}

/// Many blocks of few columns: the same optimum as with dense matrices, by the textbook's violation over all entries.
#[test]
fn many_blocks_lead_to_the_same_optimum() {
    let (m, n, p) = (400, 460, 60);
    let (x, y) = chain(m, p, 17);
    // Inputs that nothing depends on.
    let (more, _) = chain(m, n - p, 18);
    let x = Dense::from_columns(m, n, [x.values(), more.values()].concat()).unwrap();
    let penalties = Penalties { lambda: 0.2, theta: 0.3, diagonal: false };
    let (bytes, found) = tightest(&x, &y, penalties, 1e-8);
    assert_eq!(found.info.stop, Stop::Tolerance);
    assert!(found.columns <= p / 3, "{} columns in {bytes} bytes", found.columns);
    // Less than one of the matrices that are not held.
    assert!(bytes < 8 * (n * p) as u64, "{bytes}");
    let loose = by_blocks(&x, &y, penalties, 1e-8, 1 << 30, Par::Seq).unwrap();
    assert_eq!(loose.columns, p);
    let plain = |a: &Dense| (0..m).map(|i| (0..a.cols()).map(|j| a.get(i, j)).collect()).collect();
    let book = textbook(plain(&x), plain(&y), n, penalties.lambda, penalties.theta);
    let whole = solve(&book, &exact(SOLVERS[0]));
    for found in [found, loose] {
        let (l, t) = (rows(&found.lambda), rows(&found.theta));
        assert!(book.violation(&l, &t) <= 1.01e-8 * penalties.theta, "{}", book.violation(&l, &t));
        let apart = (found.info.objective - whole.objective).abs() / whole.objective.abs();
        assert!(apart <= 1e-12, "{apart}");
        let places = |m: &Sparse| m.entries().map(|e| (e.0, e.1)).collect::<Vec<_>>();
        assert_eq!(places(&found.lambda), places(&whole.lambda));
        assert_eq!(places(&found.theta), places(&whole.theta));
    }
}

#[test]
fn threads_do_not_change_a_bit_of_blocks() {
    let (x, y) = chain(300, 80, 17);
    let penalties = Penalties { lambda: 0.2, theta: 0.3, diagonal: false };
    let run = |par| by_blocks(&x, &y, penalties, 1e-6, 400_000, par).unwrap();
    let one = run(Par::Seq);
    assert!(one.info.stop == Stop::Tolerance && one.theta.nonzeros() >= 80);
    for threads in [2, 3] {
        let other = run(Par::Rayon(threads));
        assert_eq!((&one.lambda, &one.theta), (&other.lambda, &other.theta));
    }
}

/// A factor that does not fit is an error that says how much is needed, and so is a block of one column.
#[test]
fn what_does_not_fit_is_named() {
    let (x, y) = chain(100, 40, 17);
    let penalties = Penalties { lambda: 0.02, theta: 0.02, diagonal: false };
    for bytes in [1_000, 20_000, 60_000] {
        match by_blocks(&x, &y, penalties, 1e-6, bytes, Par::Seq) {
            Err(BlockError::Memory { need }) => assert!(need > bytes),
            other => panic!("{other:?}"),
        }
    }
}

/// More inputs than samples: the Hessian is singular, and without damping steps only crept along its null space (proptest found this one).
#[test]
fn a_singular_hessian_is_no_obstacle() {
    let (m, n, p) = (6, 9, 10);
    let (x, y) = data(1_520_848_694_644_031_594, m, n, p);
    let penalties = Penalties { lambda: 0.302_433_328_550_566_8, theta: 0.05, diagonal: false };
    let found = by_blocks(&dense(&x, n), &dense(&y, p), penalties, 1e-8, 1 << 20, Par::Seq).unwrap();
    assert_eq!(found.info.stop, Stop::Tolerance);
    assert!(found.info.iterations < 30, "{}", found.info.iterations);
}
