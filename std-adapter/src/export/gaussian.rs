//! The image of a Gaussian CRF; what the words mean stands in `core/IMAGE.md`.

use super::ExportError;
use super::image::{assemble, texts};
use crate::gaussian::factor::SparseFactor;
use crate::model::GaussianModel;
use gibbsite_core::image::{MAX_REALS, OPTIONAL, gaussian_memory, id};

/// An exported Gaussian CRF.
#[derive(Clone, Debug)]
pub struct GaussianExported {
    /// The image.
    pub words: Vec<u32>,
    /// What it is.
    pub info: GaussianInfo,
}

impl GaussianExported {
    /// The bytes of the image file: little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }
}

/// What an image needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaussianInfo {
    /// Bytes of flash, without code.
    pub flash: usize,
    /// Bytes of memory for a mean.
    pub ram: usize,
    /// Bytes of memory for a mean that is revised by outputs that are known, with deviations.
    pub ram_revised: usize,
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Pairs of outputs in Λ.
    pub pairs: usize,
    /// Entries of the factor below its diagonal: those pairs, and what was filled in.
    pub entries: usize,
    /// Entries of Θ.
    pub weights: usize,
}

/// Writes the image of a Gaussian CRF in single precision. Λ is factorised in double precision, then rounded. With `names` the image knows those of inputs and outputs, as far as the model does.
///
/// # Errors
/// An [`ExportError`] if the model has something that an image cannot hold.
pub fn export_gaussian(model: &GaussianModel, names: bool) -> Result<GaussianExported, ExportError> {
    let (n, p) = (model.theta.rows(), model.lambda.cols());
    if n.max(p) > MAX_REALS {
        return Err(ExportError::Reals(n.max(p)));
    }
    let factor = SparseFactor::new(&model.lambda.to_dense()).ok_or(ExportError::Precision)?;
    let sigma = model.forecaster().ok_or(ExportError::Precision)?;
    let small = |x: usize| u32::try_from(x).map_err(|_| ExportError::TooLarge);
    let mut place = vec![0u32; p];
    factor.order.iter().enumerate().for_each(|(k, &output)| place[output as usize] = k as u32);
    let (mut starts, mut inputs, mut weights) = (vec![0u32], Vec::new(), Vec::new());
    for &output in &factor.order {
        let (rows, values) = model.theta.col(output as usize);
        inputs.extend_from_slice(rows);
        weights.extend_from_slice(values);
        starts.push(small(weights.len())?);
    }
    let entries = factor.rows.len();
    let [ram, ram_revised] = gaussian_memory(p, entries);
    let deviations: Vec<f64> = (0..p).map(|j| sigma.covariance().get(j, j).sqrt()).collect();
    let positive = |x: &[f64], what: &str| {
        let words = singles(x, what)?;
        if words.iter().all(|&w| f32::from_bits(w) > 0.0) { Ok(words) } else { Err(ExportError::Precision) }
    };
    let info = GaussianInfo {
        flash: 0,
        ram,
        ram_revised,
        inputs: n,
        outputs: p,
        pairs: model.lambda_entries().iter().filter(|e| e.0 != e.1).count(),
        entries,
        weights: weights.len(),
    };
    let counts = [n, p, entries, weights.len(), ram, ram_revised];
    let mut sections = vec![
        (id::GAUSSIAN, counts.into_iter().map(small).collect::<Result<Vec<_>, _>>()?),
        (id::PLACES, [shorts(&factor.order), shorts(&place)].concat()),
        (id::FACTOR_STARTS, factor.starts),
        (id::FACTOR_ROWS, shorts(&factor.rows)),
        (
            id::FACTOR,
            [singles(&factor.factor, "the factor of Λ")?, positive(&factor.pivots, "a pivot of Λ")?].concat(),
        ),
        (
            id::PRECISION,
            [singles(&factor.couplings, "Λ")?, positive(&factor.diagonal, "the diagonal of Λ")?].concat(),
        ),
        (id::INPUT_STARTS, starts),
        (id::INPUTS, shorts(&inputs)),
        (id::INPUT_WEIGHTS, singles(&weights, "Θ")?),
        (
            id::MOMENTS,
            [singles(&model.intercept, "an intercept")?, singles(&deviations, "a deviation")?].concat(),
        ),
    ];
    for (section, list) in [(id::OUTPUT_NAMES, &model.outputs), (id::INPUT_NAMES, &model.inputs)] {
        if let Some(list) = list.as_ref().filter(|_| names) {
            sections.push((section | OPTIONAL, texts(list.iter().map(String::as_str))?));
        }
    }
    let words = assemble(&sections)?;
    Ok(GaussianExported { info: GaussianInfo { flash: 4 * words.len(), ..info }, words })
}

/// Numbers of 16 bits, the first in the lowest.
fn shorts(values: &[u32]) -> Vec<u32> {
    values.chunks(2).map(|c| c.iter().rev().fold(0, |w, &v| w << 16 | v & 0xffff)).collect()
}

/// The bits of numbers in single precision.
fn singles(values: &[f64], what: &str) -> Result<Vec<u32>, ExportError> {
    let one = |&v: &f64| {
        let narrow = v as f32;
        if narrow.is_finite() { Ok(narrow.to_bits()) } else { Err(ExportError::Weight(what.to_owned())) }
    };
    values.iter().map(one).collect()
}
