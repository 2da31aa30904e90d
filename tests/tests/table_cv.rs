//! Cross-validation over the rows of a table, on a problem that bisection solves: one output of two labels, no inputs.

use gibbsite::cv::{GridError, GridParams};
use gibbsite::data::table::Table;
use gibbsite::field::cv::cross_validate;
use gibbsite::field::schema::Columns;
use gibbsite::field::train::{Choice, Estimator, Optimize, TrainParams, index};
use gibbsite::field::{FieldData, Schema, Structure};
use gibbsite::model::FieldModel;
use gibbsite::model::field::Facts;

/// An untrained model for a CSV, and its rows.
fn untrained(text: &str, outputs: &str, structure: &Structure) -> (FieldModel, FieldData) {
    let table = Table::read(text.as_bytes()).unwrap();
    let columns = Columns::choose(&table, outputs, "").unwrap();
    let (schema, _) = Schema::learn(&table, &columns, false, false).unwrap();
    let field = schema.field(structure).unwrap();
    let (data, _) = schema.samples(&table, &field).unwrap();
    let index = index(&field, &schema.template_attributes(&field), Optimize::Joint).unwrap();
    let facts = Facts { rows: data.samples(), items: data.samples(), ..Facts::default() };
    (FieldModel { schema, structure: String::new(), field, index, theta: Vec::new(), facts }, data)
}

/// `P(b)` of the penalised likelihood of `n` rows, `k` of them `b`: with `z = θ_b - θ_a` and `θ_a = -θ_b` at the optimum, `n σ(z) - k + C₂ z / 2 = 0`.
fn fitted(n: f64, k: f64, l2: f64) -> f64 {
    let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
    let (mut low, mut high) = (-50.0, 50.0);
    for _ in 0..200 {
        let z = 0.5 * (low + high);
        if n * sigmoid(z) - k + 0.5 * l2 * z > 0.0 { high = z } else { low = z }
    }
    sigmoid(low)
}

#[test]
fn leaving_rows_out_is_fitting_without_them() {
    let (model, data) = untrained("y\na\nb\nb\nb\na\nb\nb\n", "y", &Structure::Independent);
    let params = TrainParams { tolerance: 1e-11, ..TrainParams::default() };
    let how = GridParams::new(7, &[0.0], &[4.0, 1.0, 0.25], 3);
    let found = cross_validate(&model, &data, &params, &how, &mut |_| true, &|| true).unwrap();
    assert!(!found.pseudo && found.points.len() == 3);
    let mut least = f64::INFINITY;
    for point in &found.points {
        let l2 = point.penalties.l2;
        // Two rows are `a`, five `b`.
        let (a, b) = (-(1.0 - fitted(6.0, 5.0, l2)).ln(), -fitted(6.0, 4.0, l2).ln());
        let mean = (2.0 * a + 5.0 * b) / 7.0;
        let spread = (2.0 * (a - mean).powi(2) + 5.0 * (b - mean).powi(2)) / 6.0;
        assert!((point.log_loss - mean).abs() < 1e-8, "{} or {mean} at {l2}", point.log_loss);
        assert!((point.log_loss_se - (spread / 7.0).sqrt()).abs() < 1e-8);
        assert_eq!((point.items, point.right, point.chunk), (7, 5, None));
        least = least.min(mean);
    }
    assert!((found.chosen().log_loss - least).abs() < 1e-8);
    let many = GridParams { folds: 8, ..how };
    let refused = cross_validate(&model, &data, &params, &many, &mut |_| true, &|| true);
    assert!(matches!(refused, Err(GridError::Folds { folds: 8, samples: 7 })));
}

#[test]
fn wide_fields_are_compared_by_conditionals() {
    // Four outputs in a cycle, whose exact inference does not fit into nothing.
    let rows = ["a,a,a,a", "b,b,b,b", "a,a,b,b", "b,b,b,a", "a,a,a,b", "b,a,b,b", "a,b,a,a", "b,b,b,b"];
    let text = format!("p,q,r,s\n{}\n", rows.join("\n"));
    let (model, data) = untrained(&text, "*", &Structure::Grid { rows: 2, columns: 2 });
    let combs = Estimator::Composite(Choice::Named("pseudo".into()));
    let params = TrainParams { estimator: combs, max_table_mib: 1e-6, ..TrainParams::default() };
    let how = GridParams::new(4, &[0.0], &[1.0], 0);
    let found = cross_validate(&model, &data, &params, &how, &mut |_| true, &|| true).unwrap();
    assert!(found.pseudo && found.points[0].log_loss > 0.0);
    assert_eq!(found.points[0].items, 32);
}
