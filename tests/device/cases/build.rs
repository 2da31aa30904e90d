//! What the desk prepares and the device has in flash: the junction tree of the grid, and exported model images.
use gibbsite::data::network::Network;
use gibbsite::data::sequences::Alphabet;
use gibbsite::data::table::Table;
use gibbsite::export::{
    ExportParams, FieldExportParams, Scalar, c_source, export, export_field, export_gaussian, field_c_source,
    gaussian_c_source,
};
use gibbsite::features::Index;
use gibbsite::field::schema::Columns;
use gibbsite::field::train::{Optimize, index};
use gibbsite::field::{Schema, Structure};
use gibbsite::linalg::Dense;
use gibbsite::model::sequence::{Facts, Origin};
use gibbsite::model::{FieldModel, GaussianFacts, GaussianModel, SequenceModel, field};
use gibbsite::plan::{PlanParams, plan};
use gibbsite::sparse::Sparse;
use std::fmt::Write;
use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

#[allow(dead_code)]
#[path = "src/grid.rs"]
mod grid;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut network = Network::with_cards(grid::CARDS)?;
    for ends in grid::SCOPE_START.windows(2) {
        let scope = &grid::SCOPE[ends[0] as usize..ends[1] as usize];
        let size = scope.iter().map(|&v| grid::CARDS[v as usize] as usize).product();
        network.push_factor(scope, vec![0.0; size])?;
    }
    // A small block, so that the loops around it have something to do.
    let params = PlanParams { block: 8, ..PlanParams::default() };
    let words = plan(&network, &params)?.words;
    fs::write(out.join("grid_plan.rs"), format!("&{words:?}"))?;
    fs::write(out.join("images.rs"), images(&out)?)?;
    println!("cargo:rerun-if-changed=src/grid.rs");
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}

/// Labels, attributes and items of the sequence that is labelled.
const LABELS: usize = 9;
const ATTRIBUTES: usize = 40;
const ITEMS: usize = 48;

/// Numbers from -1 to 1 that are the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    }
}

fn model(labels: usize, attributes: usize, numbers: &mut Numbers) -> Result<SequenceModel, Box<dyn Error>> {
    let mut alphabet = Alphabet::default();
    for l in 0..labels {
        alphabet.labels.intern(&format!("label {l}"));
    }
    for a in 0..attributes {
        alphabet.attributes.intern(&format!("attribute {a}"));
    }
    let lists: Vec<Vec<u32>> =
        (0..attributes).map(|_| (0..labels as u32).filter(|_| numbers.next() > -0.4).collect()).collect();
    let mut index = Index::new();
    index.push_lists(&[labels as u32], &lists)?;
    index.push_dense(&[labels as u32; 2], 1)?;
    let theta = (0..index.len()).map(|_| 2.0 * numbers.next()).collect();
    let facts = Facts {
        estimator: "mle".into(),
        solver: "none".into(),
        l1: 0.0,
        l2: 0.0,
        objective: 0.0,
        violation: 0.0,
        iterations: 0,
        converged: true,
        sequences: 0,
        items: 0,
        data: "made up".into(),
    };
    Ok(SequenceModel { alphabet, index, theta, origin: Origin::Crfsuite, facts })
}

/// Inputs and outputs of the Gaussian CRF.
const INPUTS: usize = 12;
const OUTPUTS: usize = 24;

/// A ring of outputs with some chords, each output with a few inputs.
fn gaussian(numbers: &mut Numbers) -> GaussianModel {
    let mut lambda = Dense::zeros(OUTPUTS, OUTPUTS);
    for i in 0..OUTPUTS {
        lambda.set(i, i, 4.0 + numbers.next());
        for step in [1, 7] {
            let j = (i + step) % OUTPUTS;
            let v = if step == 1 || i % 5 == 0 { 0.8 * numbers.next() } else { 0.0 };
            lambda.set(i, j, v);
            lambda.set(j, i, v);
        }
    }
    let mut theta = Dense::zeros(INPUTS, OUTPUTS);
    for j in 0..OUTPUTS {
        for i in 0..INPUTS {
            let v = numbers.next();
            theta.set(i, j, if v > 0.3 { v } else { 0.0 });
        }
    }
    let intercept = (0..OUTPUTS).map(|_| numbers.next()).collect();
    let facts = GaussianFacts {
        penalties: (0.1, 0.1),
        solver: "none".into(),
        objective: 0.0,
        violation: 0.0,
        iterations: 0,
        converged: true,
        intercept: true,
        standardize: false,
        refit: false,
        samples: 0,
        data: "made up".into(),
    };
    let (lambda, theta) = (Sparse::from_dense(&lambda), Sparse::from_dense(&theta));
    GaussianModel { lambda, theta, intercept, inputs: None, outputs: None, facts }
}

/// A grid of three by three outputs with two inputs each sees, weights drawn at random.
fn field(numbers: &mut Numbers) -> Result<FieldModel, Box<dyn Error>> {
    let table = Table::read(
        b"a,b,c,d,e,f,g,h,i,x,k\n0,0,0,0,0,0,0,0,0,1,u\n1,1,1,1,2,1,1,1,1,3,v\n1,1,1,1,1,1,1,1,1,2,v\n",
    )?;
    let columns = Columns::choose(&table, "a,b,c,d,e,f,g,h,i", "x,k")?;
    let (schema, _) = Schema::learn(&table, &columns, false, true)?;
    let field = schema.field(&Structure::Grid { rows: 3, columns: 3 })?;
    let index = index(&field, &schema.template_attributes(&field), Optimize::Joint)?;
    let theta = (0..index.len()).map(|_| numbers.next()).collect();
    let facts = field::Facts::default();
    Ok(FieldModel { schema, structure: "grid:3x3".into(), field, index, theta, facts })
}

/// The images and items as Rust; for the firmware in C, in a folder for each scalar, as headers.
fn images(out: &Path) -> Result<String, Box<dyn Error>> {
    let mut numbers = Numbers(1);
    let small = model(LABELS, ATTRIBUTES, &mut numbers)?;
    let mut text = String::new();
    let mut put = |name: &str, words: &[u32]| {
        let _ =
            writeln!(text, "/// An exported model.\npub static {name}: [u32; {}] = {words:?};", words.len());
    };
    let mut numbering = Vec::new();
    for (name, scalar) in [("F32", Scalar::F32), ("I16", Scalar::I16), ("I8", Scalar::I8)] {
        let params = ExportParams { scalar, longest: ITEMS, ..ExportParams::default() };
        let exported = export(&small, &params)?;
        put(name, &exported.words);
        let folder = out.join("c").join(name.to_lowercase());
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("model.h"), c_source(&small, &params, &exported))?;
        numbering = exported.attributes;
    }
    let large = model(LABELS, 1700, &mut numbers)?;
    put("LARGE", &export(&large, &ExportParams::default())?.words);
    let wind = gaussian(&mut Numbers(2));
    let gauss = export_gaussian(&wind, false)?;
    put("GAUSS", &gauss.words);
    let grid = field(&mut numbers)?;
    let field = |scalar| export_field(&grid, &FieldExportParams { scalar, ..FieldExportParams::default() });
    let (plain, short, byte) = (field(Scalar::F32)?, field(Scalar::I16)?, field(Scalar::I8)?);
    put("FIELD", &plain.words);
    put("FIELD_I16", &short.words);
    put("FIELD_I8", &byte.words);
    for (name, source) in [
        ("gaussian", gaussian_c_source(&wind, &gauss)),
        ("field", field_c_source(&grid, &plain)),
        ("units", field_c_source(&grid, &short)),
    ] {
        let folder = out.join("c").join(name);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("model.h"), source)?;
    }
    // Items of four attributes, of which one has another value than 1.
    let (mut floats, mut fixed) = (String::new(), String::new());
    let (mut c_floats, mut c_fixed, mut starts, mut count) =
        (String::new(), String::new(), String::from("0"), 0);
    for _ in 0..ITEMS {
        floats.push_str("&[");
        fixed.push_str("&[");
        for k in 0..4 {
            let a = ((numbers.next() + 1.0) / 2.0 * ATTRIBUTES as f64) as usize % ATTRIBUTES;
            // In sixteenths, so that both kinds have the same value.
            let value = if k == 3 { (numbers.next() * 32.0).round() / 16.0 } else { 1.0 };
            if let Some(a) = numbering[a] {
                write!(floats, "({a}, {value:?}), ")?;
                write!(fixed, "({a}, {}), ", (value * 65_536.0) as i32)?;
                write!(c_floats, "{{{a}, {value:?}f}}, ")?;
                write!(c_fixed, "{{{a}, {}}}, ", (value * 65_536.0) as i32)?;
                count += 1;
            }
        }
        floats.push_str("], ");
        fixed.push_str("], ");
        write!(starts, ", {count}")?;
    }
    let c = [("f32", "", &c_floats), ("i16", "_fixed", &c_fixed), ("i8", "_fixed", &c_fixed)];
    for (scalar, suffix, features) in c {
        let text = format!(
            "#define ITEMS {ITEMS}\n#define PUSH gibbsite_push{suffix}\n#define FIXED {}\n\
             static const gibbsite_feature{suffix} features[] = {{{features}}};\n\
             static const uint16_t starts[ITEMS + 1] = {{{starts}}};\n",
            u8::from(!suffix.is_empty())
        );
        fs::write(out.join("c").join(scalar).join("items.h"), text)?;
    }
    writeln!(text, "/// Items.\npub static FLOATS: [&[(u32, f32)]; {ITEMS}] = [{floats}];")?;
    writeln!(text, "/// The same items.\npub static FIXED: [&[(u32, i32)]; {ITEMS}] = [{fixed}];")?;
    Ok(text)
}
