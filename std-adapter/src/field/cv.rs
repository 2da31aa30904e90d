//! Penalties by cross-validation over the rows of a table.

use super::FieldData;
use super::predict::{TableScore, Want, predict};
use super::train::{TrainError, TrainParams, train};
use crate::cv::{GridError, GridFound, GridParams, Held, Trial, Watch, folds, over_grid};
use crate::infer::QueryError;
use crate::model::FieldModel;
use crate::objective::ObjectiveParams;
use crate::objective::components::Components;
use crate::objective::composite::Composite;
use crate::solver::lbfgs::{State, Stop};
use std::fmt;

/// Why a fold gave no loss.
#[derive(Debug)]
#[non_exhaustive]
pub enum FoldError {
    /// No weights.
    Train(TrainError),
    /// The weights cannot predict rows that were held out.
    Predict(QueryError),
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Train(e) => write!(f, "{e}"),
            Self::Predict(e) => write!(f, "rows that were held out: {e}"),
        }
    }
}

impl std::error::Error for FoldError {}

/// K-fold cross-validation of `C₁` and `C₂`, as [`sequence::cv`](crate::sequence::cv::cross_validate) does it for sequences: folds of rows, any estimator, warm starts from
/// the strongest penalties to the weakest, the loss `-log P(known labels | x)` of the rows that were held out.
///
/// Where exact inference does not fit `max_table_mib`, the loss is that of each known label given all others (the pseudolikelihood), and labels are predicted by
/// belief propagation; the result says so. `model` is what is to be trained, its weights are not looked at: alphabets, means and deviations are those of all rows. `go_on` is
/// asked at each step of each component's problem, `watch` at each step of a joint run.
///
/// # Errors
/// A [`GridError`]: too few rows, a fit that fails, or nothing tried on all folds.
pub fn cross_validate(
    model: &FieldModel,
    data: &FieldData,
    params: &TrainParams,
    how: &GridParams,
    watch: &mut Watch<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<GridFound, GridError<FoldError>> {
    let mut model = model.clone();
    over_grid(&mut folds(data.samples(), how)?, &how.grid, |fold, penalties| {
        let params = TrainParams { l1: penalties.l1, l2: penalties.l2, ..params.clone() };
        let kept = data.select(&fold.kept);
        let mut each = |point: &_, _: &_| watch(&Trial { penalties, fold: fold.number, point: *point });
        let start = fold.theta.take().map(State::new);
        let (state, info) = train(&model.field, &model.index, &kept, &params, start, &mut each, go_on)
            .map_err(FoldError::Train)?;
        if info.solver.stop == Stop::Interrupted {
            return Ok(None);
        }
        model.theta = state.into_theta();
        let held = evaluate(&model, &data.select(&fold.held), &params)?;
        fold.theta = Some(std::mem::take(&mut model.theta));
        Ok(Some(Held { converged: info.solver.stop.is_converged(), ..held }))
    })
}

fn evaluate(model: &FieldModel, held: &FieldData, params: &TrainParams) -> Result<Held, FoldError> {
    let want = Want { labels: true, probability: true, ..Want::default() };
    let found = predict(model, held, want, params.max_table_mib, params.par).map_err(FoldError::Predict)?;
    let mut score = TableScore::new(&model.schema);
    for (s, row) in found.each.iter().enumerate() {
        score.add(held.labels(s), &row.labels, &[]);
    }
    let exact: Option<f64> = found.each.iter().map(|row| row.log_probability).sum();
    let loss = match exact {
        Some(log_probability) => -log_probability,
        None => {
            let how = ObjectiveParams {
                par: params.par,
                max_table_mib: params.max_table_mib,
                ..ObjectiveParams::default()
            };
            let (field, index) = (&model.field, &model.index);
            let mut pseudo = Composite::new(field, index, held, &Components::pseudo(field), &how)
                .map_err(|e| FoldError::Train(e.into()))?;
            pseudo.value_gradient(&model.theta, &mut vec![0.0; index.len()])
        }
    };
    Ok(Held {
        samples: held.samples(),
        loss,
        items: score.items,
        right: score.right,
        pseudo: exact.is_none(),
        ..Held::default()
    })
}
