//! The graph of greedy elimination: bit sets, with fill counts and table sizes kept up to date edge by edge.

use super::order::Interactions;

/// A compact graph for restarts: bit sets over local numbers.
#[derive(Clone)]
pub(super) struct FillGraph {
    pub(super) words: usize,
    rows: Vec<u64>,
    degree: Vec<u32>,
    /// Edges that eliminating each variable would add.
    pub(super) fill: Vec<i64>,
    /// Binary digits of the table that eliminating each variable would make.
    pub(super) weight: Vec<f64>,
    /// Binary digits of each variable's arity.
    digits: Vec<f64>,
}

impl FillGraph {
    pub(super) fn new(graph: &Interactions, rest: &[u32]) -> Self {
        let n = rest.len();
        let words = n.div_ceil(64);
        let mut local = vec![u32::MAX; graph.cards.len()];
        for (i, &v) in rest.iter().enumerate() {
            local[v as usize] = i as u32;
        }
        let digits: Vec<f64> = rest.iter().map(|&v| f64::from(graph.cards[v as usize]).log2()).collect();
        let mut bits = Self {
            words,
            rows: vec![0; n * words],
            degree: vec![0; n],
            fill: vec![0; n],
            weight: digits.clone(),
            digits,
        };
        for (i, &v) in rest.iter().enumerate() {
            for &u in &graph.neighbours[v as usize] {
                let j = local[u as usize] as usize;
                bits.rows[i * words + j / 64] |= 1 << (j % 64);
                bits.weight[i] += f64::from(graph.cards[u as usize]).log2();
            }
            bits.degree[i] = graph.neighbours[v as usize].len() as u32;
        }
        for i in 0..n {
            let mut missing = 0i64;
            for j in bits.members(i) {
                missing += i64::from(bits.degree[i]) - 1 - i64::from(bits.common(i, j));
            }
            bits.fill[i] = missing / 2;
        }
        bits
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.rows[i * self.words..(i + 1) * self.words]
    }

    /// Neighbours that are left.
    pub(super) fn members(&self, i: usize) -> Vec<usize> {
        let mut out = Vec::with_capacity(self.degree[i] as usize);
        for (w, &word) in self.row(i).iter().enumerate() {
            let mut word = word;
            while word != 0 {
                out.push(w * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
        out
    }

    fn common(&self, i: usize, j: usize) -> u32 {
        self.row(i).iter().zip(self.row(j)).map(|(a, b)| (a & b).count_ones()).sum()
    }

    fn has(&self, i: usize, j: usize) -> bool {
        self.rows[i * self.words + j / 64] >> (j % 64) & 1 == 1
    }

    /// Adds the edge and keeps fill counts: the pair is no longer missing under any common neighbour,
    /// and each end gains a neighbour that the others may lack.
    fn connect(&mut self, i: usize, j: usize) {
        let mut common = 0;
        for w in 0..self.words {
            let mut word = self.rows[i * self.words + w] & self.rows[j * self.words + w];
            common += i64::from(word.count_ones());
            while word != 0 {
                self.fill[w * 64 + word.trailing_zeros() as usize] -= 1;
                word &= word - 1;
            }
        }
        for (a, b) in [(i, j), (j, i)] {
            self.fill[a] += i64::from(self.degree[a]) - common;
            self.rows[a * self.words + b / 64] |= 1 << (b % 64);
            self.weight[a] += self.digits[b];
        }
        self.degree[i] += 1;
        self.degree[j] += 1;
    }

    /// Eliminates `v`: makes its neighbours a clique and takes it out. Returns how many edges that added.
    pub(super) fn eliminate(&mut self, v: usize, members: &[usize]) -> usize {
        let mut added = 0;
        if self.fill[v] > 0 {
            for (k, &a) in members.iter().enumerate() {
                for &b in &members[k + 1..] {
                    if !self.has(a, b) {
                        self.connect(a, b);
                        added += 1;
                    }
                }
            }
        }
        self.remove(v, members);
        added
    }

    /// Takes `v` out; its neighbours are a clique by now.
    fn remove(&mut self, v: usize, members: &[usize]) {
        let d = i64::from(self.degree[v]);
        for &u in members {
            self.fill[u] -= i64::from(self.degree[u]) - d;
            self.rows[u * self.words + v / 64] &= !(1 << (v % 64));
            self.degree[u] -= 1;
            self.weight[u] -= self.digits[v];
        }
    }
}
