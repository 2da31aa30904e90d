//! The image of a Gaussian CRF against the model it was made of, on data.

use super::check::CheckError;
use super::gaussian::GaussianExported;
use crate::linalg::Dense;
use crate::model::GaussianModel;
use crate::par::Par;
use gibbsite_core::error::InferError;
use gibbsite_core::image::GaussianImage;
use gibbsite_core::infer::gaussian::{deviations_len, given_len, mean_len};

/// How an image does on data, against `f64`. Errors of means are in standard deviations of the output, those of deviations are relative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GaussianCheckInfo {
    /// Rows.
    pub rows: usize,
    /// The largest error of a mean.
    pub worst_mean: f64,
    /// The largest error of a deviation.
    pub worst_deviation: f64,
    /// The largest error of a mean that was revised: as if the first half of the outputs were known, each one deviation above its mean.
    pub worst_revised_mean: f64,
    /// The largest error of a deviation then.
    pub worst_revised_deviation: f64,
}

/// Predicts all rows with the image, through `gibbsite_core` as a device would, and with the model in `f64`.
///
/// # Errors
/// A [`CheckError`].
pub fn check_gaussian(
    model: &GaussianModel,
    exported: &GaussianExported,
    x: &Dense,
) -> Result<GaussianCheckInfo, CheckError> {
    let device = GaussianImage::open(&exported.words).map_err(CheckError::Image)?.view().model();
    let desk = model.forecaster().ok_or(CheckError::Row(0, InferError::BadValue))?;
    let (p, entries) = (exported.info.outputs, exported.info.entries);
    let known: Vec<bool> = (0..p).map(|j| j < p / 2).collect();
    let (free, given) = (desk.given(&[]), desk.given(&known));
    let relative = |a: f64, b: f32| if a > 0.0 { (f64::from(b) - a).abs() / a } else { f64::from(b) };
    let worst = |exact: &[f64], found: &[f32]| {
        exact.iter().zip(found).map(|(a, b)| relative(*a, *b)).fold(0.0, f64::max)
    };
    let run = || -> Result<GaussianCheckInfo, (usize, InferError)> {
        let first = |e| (0, e);
        let mut deviations = vec![0.0f32; p];
        device.deviations(&mut deviations).map_err(first)?;
        let mut info = GaussianCheckInfo {
            rows: x.rows(),
            worst_deviation: worst(free.deviations(), &deviations),
            ..Default::default()
        };
        let (mut kept, mut memory) = (vec![0.0; given_len(p, entries)], vec![0.0; mean_len(p)]);
        let left = device.given(&known, &mut kept).map_err(first)?;
        let mut work = vec![0.0; deviations_len(p, entries)];
        left.deviations(&mut deviations, &mut work).map_err(first)?;
        info.worst_revised_deviation = worst(given.deviations(), &deviations);
        let exact = desk.means(Par::Seq, x);
        let mut mean = vec![0.0f32; p];
        for i in 0..x.rows() {
            let row: Vec<f32> = (0..x.cols()).map(|j| x.get(i, j) as f32).collect();
            device.mean(&row, &mut mean, &mut memory).map_err(|e| (i, e))?;
            let mut expected: Vec<f64> = (0..p).map(|j| exact.get(i, j)).collect();
            let off = |exact: &[f64], found: &[f32]| {
                let each = exact.iter().zip(found).zip(free.deviations());
                each.map(|((a, b), d)| (a - f64::from(*b)).abs() / d).fold(0.0, f64::max)
            };
            info.worst_mean = info.worst_mean.max(off(&expected, &mean));
            let y: Vec<f64> = expected.iter().zip(free.deviations()).map(|(m, d)| m + d).collect();
            given.revise(&desk, &y, &mut expected);
            let y: Vec<f32> = y.iter().map(|&v| v as f32).collect();
            left.revise(&y, &mut mean, &mut memory).map_err(|e| (i, e))?;
            info.worst_revised_mean = info.worst_revised_mean.max(off(&expected, &mean));
        }
        Ok(info)
    };
    run().map_err(|(row, e)| CheckError::Row(row, e))
}
