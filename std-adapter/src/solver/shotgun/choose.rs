//! Which coordinates a round changes.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How the coordinates of a round are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A uniformly random set of `P` different ones: the rule of Algs. 4.1 and 4.2.
    Random,
    /// The next `P` of a permutation that is drawn again for each epoch: the thesis' implementation goes through them in turn (4.5.1).
    Cyclic,
}

/// Draws rounds.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    choice: Choice,
    order: Vec<u32>,
    next: usize,
    rng: Xoshiro256PlusPlus,
}

impl Chooser {
    pub(crate) fn new(columns: usize, choice: Choice, seed: u64) -> Self {
        let order = (0..columns as u32).collect();
        Self { choice, order, next: columns, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The coordinates of the next round, all different: `parallel` of them, fewer at the end of an epoch.
    pub(crate) fn round(&mut self, parallel: usize) -> &[u32] {
        let d = self.order.len();
        match self.choice {
            Choice::Random => {
                let parallel = parallel.min(d);
                for k in 0..parallel {
                    let other = self.rng.random_range(k..d);
                    self.order.swap(k, other);
                }
                &self.order[..parallel]
            }
            Choice::Cyclic => {
                if self.next >= d {
                    self.order.shuffle(&mut self.rng);
                    self.next = 0;
                }
                let first = self.next;
                self.next = (first + parallel).min(d);
                &self.order[first..self.next]
            }
        }
    }

    /// Puts a list in a random order.
    pub(crate) fn shuffle(&mut self, list: &mut [u32]) {
        list.shuffle(&mut self.rng);
    }
}
