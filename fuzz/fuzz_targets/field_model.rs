//! Any bytes as a model file of tables, and files whose sections were changed under a right checksum: refused, or a model that predicts, is written and
//! opened again, never a panic.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite::data::table::Table;
use gibbsite::field::predict::{Want, predict};
use gibbsite::field::schema::Columns;
use gibbsite::field::train::{Optimize, TrainParams, index, train};
use gibbsite::field::{Schema, Structure};
use gibbsite::model::FieldModel;
use gibbsite::model::field::Facts;
use gibbsite::par::Par;
use gibbsite_fuzz::edited;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const TEXT: &[u8] = b"a,b,c,x,z\nyes,no,1,0.5,red\nno,no,2,-1,blue\nyes,?,2,3,red\n,yes,1,2e3,\n";

fn table() -> Table {
    Table::read(TEXT).expect("a good table")
}

/// Files of two small models: a chain, and a full graph with shared weights and standardised inputs.
static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let file = |share: bool, structure: Structure, name: &str| {
        let table = table();
        let columns = Columns::choose(&table, if share { "a,b" } else { "a,b,c" }, "x,z").expect("columns");
        let (schema, _) = Schema::learn(&table, &columns, share, share).expect("a schema");
        let field = schema.field(&structure).expect("a field");
        let (data, _) = schema.samples(&table, &field).expect("samples");
        let index = index(&field, &schema.template_attributes(&field), Optimize::Joint).expect("an index");
        let how = TrainParams { max_iterations: 3, ..TrainParams::default() };
        let (state, info) =
            train(&field, &index, &data, &how, None, &mut |_, _| true, &|| true).expect("weights");
        let end = info.solver.end;
        let facts = Facts {
            estimator: info.estimator,
            objective: end.objective,
            violation: end.violation,
            iterations: end.iterations,
            ..Facts::default()
        };
        let theta = state.into_theta();
        FieldModel { schema, structure: name.into(), field, index, theta, facts }.to_bytes()
    };
    [file(false, Structure::Chain, "chain"), file(true, Structure::Full, "full")]
});

fn open(bytes: &[u8], want: Want) {
    let model = match FieldModel::open(bytes) {
        Ok(model) => model,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = model.to_bytes();
    assert_eq!(FieldModel::open(&written).map(|again| again.to_bytes()), Ok(written));
    let Ok((data, _)) = model.schema.samples(&table(), &model.field) else { return };
    match predict(&model, &data, want, 1.0, Par::Seq) {
        Ok(found) => {
            let cards = model.field.cards();
            let inside = |row: &[u32]| row.iter().zip(cards).all(|(y, card)| y < card);
            assert!(found.each.iter().all(|each| inside(&each.labels)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    let want = Want {
        labels: u.arbitrary()?,
        marginals: u.arbitrary()?,
        probability: u.arbitrary()?,
        forced: u.arbitrary()?,
    };
    let file = u.choose(&FILES[..])?;
    open(&edited(u, file, &[*b"outp", *b"inpt", *b"seen", *b"edge", *b"indx", *b"wght"])?, want);
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    open(bytes, Want { labels: true, ..Want::default() });
    let _ = check(bytes);
});
