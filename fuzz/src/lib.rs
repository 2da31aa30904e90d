//! What the fuzz targets share: models made from arbitrary bytes, and an oracle that shares no code with core.

pub mod readers;

use arbitrary::{Result, Unstructured};
use gibbsite::model::container::{Container, write};

/// A factor graph in the flat arrays of [`FactorGraph`](gibbsite_core::graph::FactorGraph), legal or not.
#[derive(Debug, Default)]
pub struct Arrays {
    pub cards: Vec<u32>,
    pub scope_start: Vec<u32>,
    pub scope: Vec<u32>,
    pub table_start: Vec<u32>,
    pub values: Vec<f64>,
}

/// A log-potential: mostly small, sometimes `-inf`, sometimes far out (up to `far`).
pub fn log_potential(u: &mut Unstructured<'_>, far: f64) -> Result<f64> {
    Ok(match u.arbitrary::<u8>()? {
        0..20 => f64::NEG_INFINITY,
        20..30 => 0.0,
        30..40 => {
            let x = f64::from_bits(u.arbitrary()?);
            if x.is_finite() { x.clamp(-far, far) } else { far }
        }
        small => (f64::from(small) - 148.0) / 16.0,
    })
}

impl Arrays {
    /// Arrays of which nothing is sure: any numbers, any lengths.
    pub fn any(u: &mut Unstructured<'_>) -> Result<Self> {
        fn list(u: &mut Unstructured<'_>) -> Result<Vec<u32>> {
            let len = u.int_in_range(0..=12)?;
            (0..len)
                .map(|_| Ok(if u.ratio(7, 8)? { u.int_in_range(0..=8)? } else { u.arbitrary()? }))
                .collect()
        }
        let (cards, scope_start, scope, table_start) = (list(u)?, list(u)?, list(u)?, list(u)?);
        let len = u.int_in_range(0..=64)?;
        let values = (0..len)
            .map(|_| {
                if u.ratio(15, 16)? { log_potential(u, f64::MAX) } else { Ok(f64::from_bits(u.arbitrary()?)) }
            })
            .collect::<Result<_>>()?;
        Ok(Self { cards, scope_start, scope, table_start, values })
    }

    /// A legal graph: up to 7 variables of arity 1 to 4, up to 8 factors of up to 4 variables.
    pub fn legal(u: &mut Unstructured<'_>, far: f64) -> Result<Self> {
        let variables = u.int_in_range(0..=7)?;
        let cards = (0..variables).map(|_| u.int_in_range(1..=4)).collect::<Result<Vec<u32>>>()?;
        let mut arrays = Self { cards, scope_start: vec![0], table_start: vec![0], ..Self::default() };
        for _ in 0..u.int_in_range(0..=8)? {
            let mut scope: Vec<u32> = vec![];
            for _ in 0..u.int_in_range(0..=4)? {
                if variables > 0 {
                    let v = u.int_in_range(0..=variables as u32 - 1)?;
                    if !scope.contains(&v) {
                        scope.push(v);
                    }
                }
            }
            let size: u32 = scope.iter().map(|&v| arrays.cards[v as usize]).product();
            let values = (0..size).map(|_| log_potential(u, far)).collect::<Result<Vec<_>>>()?;
            arrays.push(&scope, &values);
        }
        Ok(arrays)
    }

    /// Appends a factor.
    pub fn push(&mut self, scope: &[u32], values: &[f64]) {
        self.scope.extend(scope);
        self.values.extend(values);
        self.scope_start.push(self.scope.len() as u32);
        self.table_start.push(self.values.len() as u32);
    }

    /// How many configurations the variables have; arrays that are not a graph may have none.
    pub fn configurations(&self) -> Option<usize> {
        self.cards.iter().try_fold(1usize, |n, &c| n.checked_mul(c as usize))
    }
}

/// What brute force says about a legal graph.
#[derive(Debug)]
pub struct Truth {
    /// `log Σ_x Π ψ`.
    pub log_z: f64,
    /// `max_x Σ log ψ`.
    pub best: f64,
    /// `P(x_v = label)`, variable after variable.
    pub marginals: Vec<f64>,
    /// Largest sum of absolute finite log-potentials: what rounding errors are relative to.
    pub scale: f64,
}

impl Truth {
    /// Visits every configuration.
    pub fn of(arrays: &Arrays) -> Self {
        let Arrays { cards, scope_start, scope, table_start, values } = arrays;
        let total = arrays.configurations().expect("a small graph");
        let mut weights = Vec::with_capacity(total);
        let mut labels = vec![0u32; cards.len()];
        let mut scale = 1.0f64;
        for number in 0..total {
            let mut rest = number;
            for (label, &card) in labels.iter_mut().zip(cards).rev() {
                *label = (rest % card as usize) as u32;
                rest /= card as usize;
            }
            let (mut sum, mut size) = (0.0, 0.0);
            for k in 0..scope_start.len() - 1 {
                let mut at = 0;
                for &v in &scope[scope_start[k] as usize..scope_start[k + 1] as usize] {
                    at = at * cards[v as usize] as usize + labels[v as usize] as usize;
                }
                let value = values[table_start[k] as usize + at];
                sum += value;
                size += if value.is_finite() { value.abs() } else { 0.0 };
            }
            scale = scale.max(size);
            weights.push(sum);
        }
        let best = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mass: f64 = weights.iter().map(|w| (w - best).exp()).sum();
        let mut marginals = vec![0.0; cards.iter().map(|&c| c as usize).sum()];
        if best == f64::NEG_INFINITY {
            return Self { log_z: best, best, marginals, scale };
        }
        for (number, weight) in weights.iter().enumerate() {
            let p = (weight - best).exp() / mass;
            let (mut rest, mut end) = (number, marginals.len());
            for &card in cards.iter().rev() {
                end -= card as usize;
                marginals[end + rest % card as usize] += p;
                rest /= card as usize;
            }
        }
        Self { log_z: best + mass.ln(), best, marginals, scale }
    }

    /// Whether an exact engine's `log Z` or maximum agrees, up to the rounding of its sums.
    pub fn agrees(&self, found: f64, expected: f64) -> bool {
        found == expected || (found - expected).abs() <= 1e-10 * self.scale
    }

    /// Whether an exact engine's marginals agree. Their absolute error is that of the log-potentials' sums.
    pub fn agrees_on(&self, marginals: &[f64]) -> bool {
        let error = 1e-10 * self.scale;
        marginals.len() == self.marginals.len()
            && marginals.iter().zip(&self.marginals).all(|(p, q)| (p - q).abs() <= error)
    }
}

/// A generator (splitmix64) whose seed the fuzzer chooses.
#[derive(Debug)]
pub struct Dice(pub u64);

impl rand_core::TryRng for Dice {
    type Error = std::convert::Infallible;
    fn try_next_u32(&mut self) -> std::result::Result<u32, Self::Error> {
        Ok((self.try_next_u64()? >> 32) as u32)
    }
    fn try_next_u64(&mut self) -> std::result::Result<u64, Self::Error> {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Ok(z ^ (z >> 31))
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Self::Error> {
        for byte in bytes {
            *byte = self.try_next_u64()? as u8;
        }
        Ok(())
    }
}

/// A model file with a few bytes of its sections changed, under a right checksum.
pub fn edited(u: &mut Unstructured<'_>, file: &[u8], names: &[[u8; 4]]) -> Result<Vec<u8>> {
    let file = Container::open(file).expect("what was written");
    let mut sections: Vec<([u8; 4], Vec<u8>)> =
        names.iter().map(|&name| (name, file.section(name).expect("a section").to_vec())).collect();
    for _ in 0..u.int_in_range(0..=6)? {
        let section = &mut sections[u.choose_index(names.len())?].1;
        let at = u.int_in_range(0..=section.len())?;
        match (u.int_in_range(0..=3)?, section.get_mut(at)) {
            (0, _) => section.insert(at, u.arbitrary()?),
            (1, Some(_)) => drop(section.remove(at)),
            (2, _) => section.truncate(at),
            (_, Some(byte)) => *byte = u.arbitrary()?,
            (_, None) => {}
        }
    }
    let sections: Vec<([u8; 4], &[u8])> = sections.iter().map(|(name, s)| (*name, s.as_slice())).collect();
    Ok(write(file.kind, &file.header, &sections))
}
