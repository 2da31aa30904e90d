//! Fields in fixed point: labels and probabilities against enumeration of the model, within what is proven of scores; bad input and damage.

use crate::field::{enumerate, model, score};
use crate::open::seal;
use gibbsite::data::table::Table;
use gibbsite::export::{
    FieldExportParams, Naming, Scalar, check_field, export_field, field_c_source, field_source,
};
use gibbsite::field::schema::{Columns, Slot};
use gibbsite::field::train::{Optimize, index};
use gibbsite::field::{Schema, Structure};
use gibbsite::model::FieldModel;
use gibbsite::par::Par;
use gibbsite_core::error::{ImageError, InferError};
use gibbsite_core::image::{FieldImage, FieldView, ONE, Weight};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::score::LIMIT;
use gibbsite_tests::desk::Desk;

fn params(scalar: Scalar) -> FieldExportParams {
    FieldExportParams { scalar, naming: Naming::Exact, ..FieldExportParams::default() }
}

/// A row's attributes as a device gives them in fixed point: the number as the model has seen it.
fn attributes(model: &FieldModel, image: &FieldImage<'_>, table: &Table, row: usize) -> Vec<(u32, i32)> {
    let cell = |name: &str| table.cell(row, table.names().iter().position(|n| n == name).unwrap());
    let Slot::Number { mean, scale } = model.schema.slots[0] else { panic!("x is a number") };
    let x: f64 = cell("x").parse().unwrap();
    let x = ((x - mean) / scale * f64::from(ONE)).round() as i32;
    let k = image.attribute(format!("k={}", cell("k")).as_bytes()).unwrap();
    vec![(image.attribute(b"x").unwrap(), x), (k, ONE)]
}

/// Probabilities of all labels, and the best ones with their score.
fn exact<W: Weight<Value = i32, Score = i32>>(
    view: &FieldView<'_, W>,
    tables: &[i32],
) -> Result<(Vec<f32>, Vec<u32>, f32), InferError> {
    let graph = view.graph(tables).unwrap();
    let plan = view.plan(&graph, &mut vec![0; Plan::open_len(graph.variables(), graph.factors())])?;
    let mut desk = Desk::new(&plan, graph.variables());
    let (mut run, mut fork) = desk.lend(plan, graph)?;
    let table = view.log_add().ok_or(InferError::Shape)?;
    let mut logs = vec![0; graph.cards().iter().sum::<u32>() as usize];
    run.log_sum(&table, &mut fork)?;
    run.log_marginals(&table, &mut fork, &mut logs)?;
    let best = run.maximise(&mut fork)?;
    let mut labels = vec![0; graph.variables()];
    run.decode(&mut labels)?;
    assert_eq!(graph.log_potential(&labels), Some(best));
    Ok((logs.into_iter().map(|log| view.to_f32(log).exp()).collect(), labels, view.total(best)))
}

/// Every row of the data through an image, against the model.
fn compare<W: Weight<Value = i32, Score = i32>>(structure: &Structure, seed: u64, most: f64) {
    let (model, data, table) = model(seed, structure);
    let exported = export_field(&model, &params(W::SCALAR)).unwrap();
    let image = FieldImage::open(&exported.words).unwrap();
    assert_eq!((image.scalar(), image.bytes()), (W::SCALAR, exported.info.flash));
    assert_eq!(image.field::<f32>().err(), Some(ImageError::Scalar(W::SCALAR)));
    let view = image.field::<W>().unwrap();
    let mut tables = vec![0; image.tables_len()];
    let mut worst = 0f64;
    for row in 0..table.rows() {
        let given = attributes(&model, &image, &table, row);
        assert_eq!(view.tables(&given, &mut tables), Ok(false));
        let (p, labels, told) = exact(&view, &tables).unwrap();
        let (right, best) = enumerate(&model, &data, row);
        let of = |y: &[u32]| score(&model, &data, row, y);
        let bound = f64::from(view.error_bound(&given));
        assert!((f64::from(told) - of(&labels)).abs() <= bound + 1e-5, "{told} {} {bound}", of(&labels));
        assert!(of(&best) - of(&labels) <= 2.0 * bound + 1e-5);
        worst = p.iter().zip(&right).map(|(p, q)| (f64::from(*p) - q).abs()).fold(worst, f64::max);
        // A label that is known.
        view.observe(&mut tables, 0, 1).unwrap();
        let (given, labels, _) = exact(&view, &tables).unwrap();
        assert_eq!((given[0], given[2], labels[0]), (0.0, 0.0, 1));
        assert!((given[1] - 1.0).abs() < 1e-3, "{given:?}");
    }
    assert!(worst < most && worst > 0.0, "{structure:?}: {worst}");
    // The check that `export` makes finds the same.
    let info = check_field(&model, &exported, &data, Par::Seq).unwrap();
    assert!((info.exact.unwrap().worst_probability_error - worst).abs() < 1e-6, "{info:?} {worst}");
    assert!(info.worst_score_error <= info.score_error_bound && info.saturated == 0, "{info:?}");
}

#[test]
fn a_device_without_floating_point_computes_what_enumeration_says() {
    let structures =
        [Structure::Chain, Structure::Full, Structure::Grid { rows: 2, columns: 2 }, Structure::Independent];
    for (seed, structure) in structures.iter().enumerate() {
        compare::<i16>(structure, seed as u64, 3e-4);
        compare::<i8>(structure, seed as u64, 0.01);
    }
}

#[test]
fn bad_input_leaves_the_output_as_it_was_in_fixed_point() {
    let (model, _, _) = model(5, &Structure::Chain);
    let exported = export_field(&model, &params(Scalar::I16)).unwrap();
    let image = FieldImage::open(&exported.words).unwrap();
    assert_eq!(image.field::<i8>().err(), Some(ImageError::Scalar(Scalar::I16)));
    let view = image.field::<i16>().unwrap();
    let (x, nowhere) = (image.attribute(b"x").unwrap(), image.attributes() as u32);
    let mut tables = vec![7; image.tables_len()];
    let refused = view.tables(&[(x, ONE), (nowhere, ONE)], &mut tables);
    assert_eq!(refused, Err(InferError::Attribute(nowhere)));
    let short = image.tables_len() - 1;
    let memory = InferError::Memory { needed: short + 1, given: short };
    assert_eq!(view.tables(&[], &mut tables[..short]), Err(memory));
    assert_eq!(view.observe(&mut tables, 0, 3), Err(InferError::Shape));
    assert!(tables.iter().all(|&t| t == 7));
    assert!(view.graph(&tables[..short]).is_err());
    // What is too large is cut off, and said to be; the graph takes it.
    assert_eq!(view.tables(&[(x, i32::MAX); 40], &mut tables), Ok(true));
    assert!(tables.iter().all(|t| t.abs() <= LIMIT) && tables.iter().any(|t| t.abs() == LIMIT));
    assert!(view.graph(&tables).is_ok() && exact(&view, &tables).is_ok());
    // So is what is minus as much.
    assert_eq!(view.tables(&[(x, i32::MIN); 40], &mut tables), Ok(true));
    assert!(exact(&view, &tables).is_ok());
}

/// What Q16.16 cannot hold is told by the check.
#[test]
fn inputs_beyond_fixed_point_are_told() {
    let text = "a,b,x\n0,0,100000\n1,1,-2\n0,1,3\n";
    let table = Table::read(text.as_bytes()).unwrap();
    let columns = Columns::choose(&table, "a,b", "x").unwrap();
    // Not standardised, so that a device gives it as it is.
    let (schema, _) = Schema::learn(&table, &columns, false, false).unwrap();
    let field = schema.field(&Structure::Chain).unwrap();
    let (data, _) = schema.samples(&table, &field).unwrap();
    let index = index(&field, &schema.template_attributes(&field), Optimize::Joint).unwrap();
    let theta = vec![1e-4; index.len()];
    let facts = gibbsite::model::field::Facts::default();
    let model = FieldModel { schema, structure: String::new(), field, index, theta, facts };
    for (scalar, rows) in [(Scalar::F32, 0), (Scalar::I16, 1)] {
        let exported = export_field(&model, &params(scalar)).unwrap();
        assert_eq!(check_field(&model, &exported, &data, Par::Seq).unwrap().saturated, rows);
    }
}

#[test]
fn damaged_fields_in_fixed_point_never_panic() {
    for scalar in [Scalar::I16, Scalar::I8] {
        let (model, _, _) = model(6, &Structure::Grid { rows: 2, columns: 2 });
        let words = export_field(&model, &params(scalar)).unwrap().words;
        let mut opened = 0;
        for at in 8..words.len() {
            for change in [1u32, u32::MAX, 1 << 31, 1 << 16, 1 << 15] {
                let mut other = words.clone();
                other[at] = other[at].wrapping_add(change);
                seal(&mut other);
                let Ok(image) = FieldImage::open(&other) else { continue };
                opened += 1;
                let mut tables = vec![0; image.tables_len()];
                let run = |run: &mut dyn FnMut(&mut [i32])| run(&mut tables);
                match image.scalar() {
                    Scalar::I16 => use_view(&image.field::<i16>().unwrap(), run),
                    Scalar::I8 => use_view(&image.field::<i8>().unwrap(), run),
                    Scalar::F32 => unreachable!("constants and weights take fewer words"),
                }
            }
        }
        assert!(opened > 100, "{opened}");
    }
}

fn use_view<W: Weight<Value = i32, Score = i32>>(
    view: &FieldView<'_, W>,
    with: impl FnOnce(&mut dyn FnMut(&mut [i32])),
) {
    with(&mut |tables| {
        view.tables(&[], tables).unwrap();
        if view.graph(tables).is_ok() {
            let _ = exact(view, tables);
        }
    });
}

#[test]
fn sources_say_how_inputs_are_prepared() {
    let (model, _, _) = model(8, &Structure::Chain);
    let Slot::Number { mean, scale } = model.schema.slots[0] else { panic!("x is a number") };
    let told = format!("less {mean:?}, divided by {scale:?}");
    let fixed = export_field(&model, &params(Scalar::I8)).unwrap();
    assert!(field_source(&model, &fixed).contains(&told));
    assert!(field_c_source(&model, &fixed).contains(&told));
    let plain = export_field(&model, &params(Scalar::F32)).unwrap();
    assert!(!field_source(&model, &plain).contains("less") && plain.standardised.iter().all(Option::is_none));
}
