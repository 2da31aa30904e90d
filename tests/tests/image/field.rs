//! Images of fields: what a device computes from them is what enumeration of the model says; damage and bad input are refused.

use crate::open::seal;
use gibbsite::data::table::Table;
use gibbsite::export::{FieldExportParams, Naming, check_field, export_field};
use gibbsite::field::sample::sample;
use gibbsite::field::schema::{Columns, Slot};
use gibbsite::field::train::{Optimize, index};
use gibbsite::field::{FieldData, Schema, Structure};
use gibbsite::model::FieldModel;
use gibbsite::model::field::Facts;
use gibbsite::par::Par;
use gibbsite_core::error::{ImageError, InferError};
use gibbsite_core::graph::Incidence;
use gibbsite_core::image::{FieldImage, Image};
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::loopy::Dimensions;
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::{conditional, icm};
use gibbsite_tests::regression::rng;
use rand::RngExt;

const TEXT: &str = "a,b,c,d,x,k\nr,0,n,0,1.5,u\ng,1,n,1,-2,v\nb,0,y,0,0.5,w\nr,1,y,1,7,v\n";

/// A field with weights drawn at random over four outputs, of 3, 2, 2 and 2 labels, with a number and a discrete input.
pub(crate) fn model(seed: u64, structure: &Structure) -> (FieldModel, FieldData, Table) {
    let table = Table::read(TEXT.as_bytes()).unwrap();
    let columns = Columns::choose(&table, "a,b,c,d", "x,k").unwrap();
    let (schema, _) = Schema::learn(&table, &columns, false, true).unwrap();
    let field = schema.field(structure).unwrap();
    let (data, _) = schema.samples(&table, &field).unwrap();
    let index = index(&field, &schema.template_attributes(&field), Optimize::Joint).unwrap();
    let mut rng = rng(seed);
    let theta = (0..index.len()).map(|_| rng.random_range(-1.5..1.5)).collect();
    let model = FieldModel { schema, structure: String::new(), field, index, theta, facts: Facts::default() };
    (model, data, table)
}

/// The score of labels in the model.
pub(crate) fn score(model: &FieldModel, data: &FieldData, sample: usize, y: &[u32]) -> f64 {
    let mut sum = 0.0;
    for k in 0..model.field.factors() {
        let configuration = model.field.configuration(k, y).unwrap() as u32;
        let mut add = |a: u32, value: f64| {
            let at = model.index.parameter(model.field.template(k), a, configuration).unwrap();
            sum += value * model.theta[at];
        };
        match data.row(sample, k) {
            Some(row) => row.iter().for_each(|(a, value)| add(a, value)),
            None => add(0, 1.0),
        }
    }
    sum
}

/// Marginals of all outputs and the best labels, by going through all labellings.
pub(crate) fn enumerate(model: &FieldModel, data: &FieldData, sample: usize) -> (Vec<f64>, Vec<u32>) {
    let cards = model.field.cards();
    let mut all = vec![vec![]];
    for &card in cards {
        all = all.iter().flat_map(|y: &Vec<u32>| (0..card).map(|l| [&y[..], &[l]].concat())).collect();
    }
    let scores: Vec<f64> = all.iter().map(|y| score(model, data, sample, y)).collect();
    let best = (0..all.len()).max_by(|&i, &j| scores[i].total_cmp(&scores[j])).unwrap();
    let z: f64 = scores.iter().map(|s| s.exp()).sum();
    let mut marginals = Vec::new();
    for (v, &card) in cards.iter().enumerate() {
        for l in 0..card {
            let of = all.iter().zip(&scores).filter(|(y, _)| y[v] == l);
            marginals.push(of.map(|(_, s)| s.exp() / z).sum());
        }
    }
    (marginals, all[best].clone())
}

/// A row's attributes as a device gives them: the number as it stands, and the value by its name.
fn attributes(model: &FieldModel, image: &FieldImage<'_>, table: &Table, row: usize) -> Vec<(u32, f32)> {
    let cell = |name: &str| table.cell(row, table.names().iter().position(|n| n == name).unwrap());
    assert!(matches!(model.schema.slots[0], Slot::Number { mean, .. } if mean != 0.0));
    let x = image.attribute(b"x").unwrap();
    let k = image.attribute(format!("k={}", cell("k")).as_bytes()).unwrap();
    vec![(x, cell("x").parse().unwrap()), (k, 1.0)]
}

/// Exact marginals and best labels through the image's junction tree.
fn exact(image: &FieldImage<'_>, tables: &[f32]) -> Result<(Vec<f32>, Vec<u32>), InferError> {
    let view = image.field::<f32>().unwrap();
    let graph = view.graph(tables).unwrap();
    let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
    let plan = view.plan(&graph, &mut counters)?;
    let (mut messages, mut belief) = (vec![0.0; plan.messages_len()], vec![0.0; plan.belief_len()]);
    let (mut separator, mut index) = (vec![0.0; plan.separator_len()], vec![0; plan.index_len()]);
    let (mut facts, mut starts) = (vec![Fact::default(); plan.clusters()], vec![0; graph.variables()]);
    let mut temp = vec![0.0; plan.temp_len()];
    let mut fork = Sequential { temp: &mut temp };
    let memory = Memory {
        messages: &mut messages,
        facts: &mut facts,
        belief: &mut belief,
        separator: &mut separator,
        index: &mut index,
        starts: &mut starts,
    };
    let mut junction = Junction::new(plan, graph, memory)?;
    let mut marginals = vec![0.0; image.cards().iter().sum::<u32>() as usize];
    junction.sum(&mut fork)?;
    junction.marginals(&mut fork, &mut marginals)?;
    let mut labels = vec![0; graph.variables()];
    junction.maximise(&mut fork)?;
    junction.decode(&mut labels)?;
    Ok((marginals, labels))
}

/// What `export --check` says is what enumeration says of the image's answers, and a wrong weight shows.
#[test]
fn the_check_tells_how_far_an_image_is_off() {
    for (seed, structure) in [Structure::Chain, Structure::Full].iter().enumerate() {
        let (model, data, table) = model(seed as u64, structure);
        let exported = export_field(&model, &FieldExportParams::default()).unwrap();
        let info = check_field(&model, &exported, &data, Par::Seq).unwrap();
        let found = info.exact.unwrap();
        assert_eq!((info.rows, found.different_labels), (table.rows(), 0));
        assert!(info.worst_score_error > 0.0 && info.worst_score_error < 1e-5, "{info:?}");
        assert!(found.worst_probability_error > 0.0 && found.worst_probability_error < 1e-5, "{info:?}");
        assert_eq!(found.worst_score_loss, 0.0);

        // The image of another model, with one weight changed: enumeration of both says what the check must find.
        let mut other = model.clone();
        let at = other.theta.iter().position(|w| *w > 0.5).unwrap();
        other.theta[at] -= 3.0;
        let exported = export_field(&other, &FieldExportParams::default()).unwrap();
        let info = check_field(&model, &exported, &data, Par::Seq).unwrap();
        let (mut worst, mut labels) = (0f64, 0);
        for row in 0..table.rows() {
            let ((p, best), (q, chosen)) = (enumerate(&model, &data, row), enumerate(&other, &data, row));
            worst = p.iter().zip(&q).map(|(p, q)| (p - q).abs()).fold(worst, f64::max);
            labels += best.iter().zip(&chosen).filter(|(a, b)| a != b).count();
        }
        let found = info.exact.unwrap();
        assert!((found.worst_probability_error - worst).abs() < 2e-5, "{found:?} {worst}");
        assert_eq!(found.different_labels, labels);
        assert!(worst > 0.01 && (labels == 0 || found.worst_score_loss > 0.0));

        // Without a junction tree only scores are compared.
        let params = FieldExportParams { max_plan_bytes: 0, ..FieldExportParams::default() };
        let info = check_field(&model, &export_field(&model, &params).unwrap(), &data, Par::Seq).unwrap();
        assert!(info.exact.is_none() && info.worst_score_error > 0.0 && info.worst_score_error < 1e-5);
    }
}

#[test]
fn a_device_computes_what_enumeration_says() {
    let structures =
        [Structure::Chain, Structure::Full, Structure::Grid { rows: 2, columns: 2 }, Structure::Independent];
    for (seed, structure) in structures.iter().enumerate() {
        for naming in [Naming::Hash, Naming::Exact] {
            let (model, data, table) = model(seed as u64, structure);
            let params = FieldExportParams { naming, ..FieldExportParams::default() };
            let exported = export_field(&model, &params).unwrap();
            let image = FieldImage::open(&exported.words).unwrap();
            let view = image.field::<f32>().unwrap();
            assert_eq!((image.variables(), image.bytes()), (4, exported.info.flash));
            assert_eq!(image.label(0, 2).unwrap().collect::<Vec<u8>>(), b"r");
            assert!(image.label(0, 3).is_none() && image.label(4, 0).is_none());
            let mut tables = vec![0.0; image.tables_len()];
            for row in 0..table.rows() {
                let attributes = attributes(&model, &image, &table, row);
                view.tables(&attributes, &mut tables).unwrap();
                let (marginals, labels) = exact(&image, &tables).unwrap();
                let (expected, best) = enumerate(&model, &data, row);
                for (p, q) in marginals.iter().zip(&expected) {
                    assert!((f64::from(*p) - q).abs() < 2e-5, "{marginals:?} {expected:?}");
                }
                assert_eq!(labels, best);

                // Coordinate ascent from there stays; with a label known, the others follow from it.
                let graph = view.graph(&tables).unwrap();
                let size = Dimensions::of(&graph);
                let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
                let incidence = Incidence::build(&graph, &mut memory).unwrap();
                let mut scratch = vec![0.0; icm::scratch_len(&size)];
                let mut stays = labels.clone();
                icm::ascend(&graph, &incidence, &mut stays, 10, &mut scratch).unwrap();
                assert_eq!(stays, labels);
                // One output given the others, against the potential of all labels.
                let (mut p, mut scratch) = ([9.0; 4], [0.0; 3]);
                conditional(&graph, &incidence, &[0, 1, 0, 1], 0, &mut p, &mut scratch).unwrap();
                let weights = [0, 1, 2].map(|l| f64::from(graph.log_potential(&[l, 1, 0, 1]).unwrap()).exp());
                for (p, w) in p.iter().zip(weights) {
                    assert!((f64::from(*p) - w / weights.iter().sum::<f64>()).abs() < 1e-5);
                }
                assert_eq!(p[3], 9.0);
                let missing = conditional(&graph, &incidence, &[0, 1, 0, 1], 4, &mut p, &mut scratch);
                assert_eq!(missing, Err(InferError::Shape));
                view.observe(&mut tables, 0, 1).unwrap();
                let (given, _) = exact(&image, &tables).unwrap();
                assert_eq!(given[..3], [0.0, 1.0, 0.0]);
            }
        }
    }
}

#[test]
fn bad_input_leaves_the_output_as_it_was() {
    let (model, _, _) = model(5, &Structure::Chain);
    let exported = export_field(&model, &FieldExportParams::default()).unwrap();
    let image = FieldImage::open(&exported.words).unwrap();
    let view = image.field::<f32>().unwrap();
    let mut tables = vec![7.0; image.tables_len()];
    let x = image.attribute(b"x").unwrap();
    let nowhere = image.attributes() as u32;
    for (attributes, error) in [
        (vec![(x, f32::NAN)], InferError::BadValue),
        (vec![(x, f32::INFINITY)], InferError::BadValue),
        (vec![(x, 1.0), (nowhere, 1.0)], InferError::Attribute(nowhere)),
    ] {
        assert_eq!(view.tables(&attributes, &mut tables), Err(error));
    }
    let short = image.tables_len() - 1;
    let memory = InferError::Memory { needed: short + 1, given: short };
    assert_eq!(view.tables(&[], &mut tables[..short]), Err(memory));
    assert_eq!(view.observe(&mut tables, 0, 3), Err(InferError::Shape));
    assert_eq!(view.observe(&mut tables, 4, 0), Err(InferError::Shape));
    assert!(tables.iter().all(|&t| t == 7.0));
    // What overflows is seen before an engine runs.
    view.tables(&[(x, f32::MAX), (x, f32::MAX), (x, f32::MAX)], &mut tables).unwrap();
    assert!(view.graph(&tables).is_err());
    assert!(view.graph(&tables[..short]).is_err());
}

#[test]
fn damaged_fields_are_refused_and_never_panic() {
    let (model, _, _) = model(6, &Structure::Grid { rows: 2, columns: 2 });
    let words = export_field(&model, &FieldExportParams::default()).unwrap().words;
    // Each reader refuses the other's image by the section that it does not know.
    assert!(matches!(Image::open(&words), Err(ImageError::Section { section: 32, .. })));
    let mut opened = 0;
    for at in 8..words.len() {
        for change in [1u32, u32::MAX, 1 << 31, 1 << 16] {
            let mut other = words.clone();
            other[at] = other[at].wrapping_add(change);
            assert_eq!(FieldImage::open(&other).err(), Some(ImageError::Checksum));
            seal(&mut other);
            let Ok(image) = FieldImage::open(&other) else { continue };
            opened += 1;
            let mut tables = vec![0.0; image.tables_len()];
            image.field::<f32>().unwrap().tables(&[], &mut tables).unwrap();
            let _ = exact(&image, &tables);
        }
        assert!(FieldImage::open(&words[..at]).is_err());
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn a_field_that_is_too_wide_has_no_plan() {
    let (model, _, _) = model(7, &Structure::Full);
    let params = FieldExportParams { max_plan_bytes: 100, ..FieldExportParams::default() };
    let exported = export_field(&model, &params).unwrap();
    assert_eq!(exported.info.exact, None);
    let image = FieldImage::open(&exported.words).unwrap();
    let mut tables = vec![0.0; image.tables_len()];
    image.field::<f32>().unwrap().tables(&[], &mut tables).unwrap();
    assert_eq!(exact(&image, &tables).err(), Some(InferError::Plan(0)));
}

/// Draws on the desk against the same enumeration: frequencies of labels.
#[test]
fn draws_follow_the_distribution() {
    const DRAWS: usize = 20_000;
    let (model, data, _) = model(11, &Structure::Grid { rows: 2, columns: 2 });
    let drawn = sample(&model, &data, DRAWS, 3, 64.0, Par::Seq).unwrap();
    assert_eq!(drawn, sample(&model, &data, DRAWS, 3, 64.0, Par::threads(2)).unwrap());
    for (s, draws) in drawn.iter().enumerate() {
        let (marginals, _) = enumerate(&model, &data, s);
        let mut expected = marginals.iter();
        for (v, &card) in model.field.cards().iter().enumerate() {
            for l in 0..card {
                let seen = draws.iter().filter(|y| y[v] == l).count() as f64 / DRAWS as f64;
                let p = *expected.next().unwrap();
                // Five standard errors.
                let error = 5.0 * (p * (1.0 - p) / DRAWS as f64).sqrt();
                assert!((seen - p).abs() <= error, "sample {s}, output {v}, label {l}: {seen} {p}");
            }
        }
    }
}
