//! Scores of a sparse regression.

use crate::cmd::predict::regression::remark;
use crate::{Outcome, config, output};
use gibbsite::model::RegressionModel;
use gibbsite::regress::score::{ClassScore, ValueScore, score_classes, score_values};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

pub(crate) fn run(config: &config::Eval, model: &RegressionModel) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let data = config.data.read_for(model, true, common.par)?;
    remark(common, model, &data);
    let start = Instant::now();
    let margins = model.margins(&data.matrix);
    let rate = margins.len() as f64 / start.elapsed().as_secs_f64().max(1e-9);
    let empty = || anyhow::anyhow!("{}: there are no rows to score", config.data.name());
    let (mut json, text) = match model.labels {
        None => {
            let score = score_values(&margins, &data.target).ok_or_else(empty)?;
            (values_json(&score), values_text(&score))
        }
        Some(labels) => {
            let positive = classes(&data.target, labels)
                .map_err(|what| anyhow::anyhow!("{}: {what}", config.data.name()))?;
            let score = score_classes(&margins, &positive).ok_or_else(empty)?;
            (classes_json(&score, labels), classes_text(&score, labels))
        }
    };
    json["items_per_second"] = json!(rate);
    let items = margins.len();
    let text = if common.json {
        // The count first, as everywhere.
        let mut whole = json!({ "items": items });
        if let (Value::Object(whole), Value::Object(scores)) = (&mut whole, json) {
            whole.extend(scores);
        }
        format!("{whole}\n")
    } else {
        format!("{} items\n{text}", items)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(Outcome::Done)
}

/// Which samples have the positive label.
fn classes(target: &[f64], [negative, positive]: [f64; 2]) -> Result<Vec<bool>, String> {
    let other = target.iter().position(|&y| y != negative && y != positive);
    if let Some(k) = other {
        let (sample, found) = (k + 1, target[k]);
        return Err(format!(
            "sample {sample} has the label {found}, but the model knows {negative} and {positive}"
        ));
    }
    Ok(target.iter().map(|&y| y == positive).collect())
}

fn values_json(score: &ValueScore) -> Value {
    json!({ "r2": score.r2, "mse": score.mse, "mae": score.mae })
}

fn values_text(score: &ValueScore) -> String {
    let r2 = score.r2.map_or("undefined: the target is constant".to_owned(), |r2| format!("{r2:.6}"));
    let mut text = String::new();
    for (name, value) in [
        ("R²", r2),
        ("mean squared error", score.mse.to_string()),
        ("mean absolute error", score.mae.to_string()),
    ] {
        let _ = writeln!(text, "  {name:<22} {value}");
    }
    text
}

fn classes_json(score: &ClassScore, labels: [f64; 2]) -> Value {
    let each = labels.iter().zip(&score.labels).map(|(label, s)| {
        json!({ "label": label, "precision": s.precision, "recall": s.recall, "f1": s.f1, "support": s.support })
    });
    json!({
        "item_accuracy": score.accuracy,
        "accuracy": score.accuracy,
        "auc": score.auc,
        "log_loss": score.log_loss,
        "labels": each.collect::<Vec<_>>(),
    })
}

fn classes_text(score: &ClassScore, labels: [f64; 2]) -> String {
    let auc = score.auc.map_or("undefined: one label only".to_owned(), |auc| format!("{auc:.6}"));
    let mut text = String::new();
    let accuracy = format!("{:.6}", score.accuracy);
    for (name, value) in
        [("accuracy", accuracy), ("AUC", auc), ("log loss", format!("{:.6}", score.log_loss))]
    {
        let _ = writeln!(text, "  {name:<22} {value}");
    }
    let _ =
        writeln!(text, "\n  {:<10} {:>9} {:>9} {:>9} {:>9}", "label", "precision", "recall", "F1", "support");
    for (label, s) in labels.iter().zip(&score.labels) {
        let (p, r, f1, support) = (s.precision, s.recall, s.f1, s.support);
        let _ = writeln!(text, "  {label:<10} {p:>9.4} {r:>9.4} {f1:>9.4} {support:>9}");
    }
    text
}
