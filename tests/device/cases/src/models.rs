//! The models: fixed shapes, tables from a fixed pseudo-random sequence, some entries `-inf`.

use crate::grid;
use gibbsite_core::math::Real;

/// A factor graph without its values.
#[derive(Debug)]
pub struct Model {
    /// This and the next three as [`FactorGraph`](gibbsite_core::graph::FactorGraph) has them.
    pub cards: &'static [u32],
    pub scope_start: &'static [u32],
    pub scope: &'static [u32],
    pub table_start: &'static [u32],
    /// The junction tree's plan, made on the desk by `build.rs`; empty where there is none.
    pub plan: &'static [u32],
    /// Every so manyeth entry is `-inf`; 0 for none.
    pub forbidden: u32,
}

impl Model {
    /// Writes the tables: multiples of 2⁻²⁰ between -2 and 2, exact in both scalars. Returns how many entries.
    pub fn fill<T: Real>(&self, values: &mut [T]) -> usize {
        let used = self.table_start.last().map_or(0, |&end| end as usize);
        let mut state = 0x9E37_79B9u32;
        for (i, slot) in values.iter_mut().take(used).enumerate() {
            // Marsaglia's xorshift, 32 bits.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let forbidden = self.forbidden != 0 && (i as u32 + 1) % self.forbidden == 0;
            *slot = if forbidden {
                T::NEG_INFINITY
            } else {
                T::from_f64(f64::from(state >> 10) / f64::from(1 << 20) - 2.0)
            };
        }
        used
    }
}

/// Two tables that share a variable, for the table operations: `(x0, x1)` and `(x2, x0)`.
pub static PAIR: Model = Model {
    cards: &[3, 4, 2],
    scope_start: &[0, 2, 4],
    scope: &[0, 1, 2, 0],
    table_start: &[0, 12, 18],
    plan: &[],
    forbidden: 7,
};

/// A chain of sixteen positions with four labels (the one number in `cards`): the scores of the labels at each
/// position, then one table of transitions.
pub static CHAIN: Model =
    Model { cards: &[4], scope_start: &[], scope: &[], table_start: &[0, 64, 80], plan: &[], forbidden: 11 };

/// A chain of six positions with nine labels and a table of transitions for each gap; nothing is forbidden.
pub static CHAIN_EACH: Model =
    Model { cards: &[9], scope_start: &[], scope: &[], table_start: &[0, 54, 459], plan: &[], forbidden: 0 };

/// A forest: a factor of three variables, branches, and a tree apart; arities 1 to 4.
pub static FOREST: Model = Model {
    cards: &[2, 3, 4, 2, 1, 3, 2, 2],
    scope_start: &[0, 3, 5, 7, 9, 10, 12, 13],
    scope: &[0, 1, 2, 2, 3, 1, 4, 3, 5, 0, 6, 7, 6],
    table_start: &[0, 24, 32, 35, 41, 43, 47, 49],
    plan: &[],
    forbidden: 13,
};

/// A grid of three by three, arities 2 and 3, with a unary factor on each place.
pub static GRID: Model = Model {
    cards: &grid::CARDS,
    scope_start: &grid::SCOPE_START,
    scope: &grid::SCOPE,
    table_start: &[0, 2, 5, 7, 9, 11, 14, 16, 18, 20, 26, 32, 36, 42, 46, 50, 54, 58, 64, 68, 74, 80],
    plan: include!(concat!(env!("OUT_DIR"), "/grid_plan.rs")),
    forbidden: 29,
};
