//! Any words as a model image, and good images with some words changed under a right checksum: refused, or an image that every engine runs on.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite::data::sequences::{Format, ReadParams, read_from};
use gibbsite::data::table::Table;
use gibbsite::export::{
    ExportParams, FieldExportParams, Naming, Scalar, export, export_field, export_gaussian,
};
use gibbsite::field::schema::Columns;
use gibbsite::field::train::{Optimize, index};
use gibbsite::field::{Schema, Structure};
use gibbsite::linalg::Dense;
use gibbsite::model::sequence::Origin;
use gibbsite::model::{FieldModel, GaussianFacts, GaussianModel, field};
use gibbsite::sequence::train::{TrainParams, train};
use gibbsite::sparse::Sparse;
use gibbsite_core::graph::{FactorGraph, Incidence};
use gibbsite_core::image::{Checksum, FieldImage, FieldView, GaussianImage, Image, Weight, marginals_len};
use gibbsite_core::infer::chain::Chain;
use gibbsite_core::infer::fork::Sequential;
use gibbsite_core::infer::gaussian::{Terms, deviations_len, given_len, mean_len};
use gibbsite_core::infer::junction::{Fact, Junction, Memory};
use gibbsite_core::infer::loopy::{Dimensions, Loopy, Mode, Params};
use gibbsite_core::infer::plan::Plan;
use gibbsite_core::infer::stream::{Decoder, decoder_len, lagged_back_len};
use gibbsite_core::infer::{icm, log_conditional};
use gibbsite_core::score::Score;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const TEXT: &[u8] = b"x\ta\tb:0.5\ny\tb\tc\nz\ta:2\tc\n\ny\tc:-1\nx\ta\n";

/// Small images of every kind.
static IMAGES: LazyLock<Vec<Vec<u32>>> = LazyLock::new(|| {
    let corpus = read_from(TEXT, &ReadParams::new(Format::Crfsuite)).expect("a good text");
    let how = TrainParams { l2: 0.1, max_iterations: 3, ..TrainParams::default() };
    let (model, _) = train(&corpus, Origin::Crfsuite, "", &how, None, &mut |_, _| true).expect("a model");
    let mut all = Vec::new();
    for scalar in [Scalar::F32, Scalar::I16, Scalar::I8] {
        for naming in [Naming::Exact, Naming::Numbers] {
            let forbidden = if naming == Naming::Exact { vec![(0, 1)] } else { vec![] };
            let params = ExportParams { scalar, naming, longest: 5, forbidden };
            all.push(export(&model, &params).expect("a small model").words);
        }
    }
    for names in [true, false] {
        all.push(export_gaussian(&gaussian(), names).expect("a small model").words);
    }
    for structure in [Structure::Chain, Structure::Grid { rows: 2, columns: 2 }] {
        let model = field_model(&structure);
        for naming in [Naming::Exact, Naming::Numbers] {
            for scalar in [Scalar::F32, Scalar::I16, Scalar::I8] {
                let params = FieldExportParams { scalar, naming, ..FieldExportParams::default() };
                all.push(export_field(&model, &params).expect("a small field").words);
            }
        }
    }
    all
});

/// Five outputs in a ring, two inputs.
fn gaussian() -> GaussianModel {
    let ring = |i: usize, j: usize| [3.0, 0.5, 0.0, 0.0, 0.5][i.abs_diff(j)];
    let names = |count: usize| Some((0..count).map(|k| k.to_string()).collect());
    GaussianModel {
        lambda: Sparse::from_dense(&Dense::from_fn(5, 5, ring)),
        theta: Sparse::from_dense(&Dense::from_fn(2, 5, |i, j| if (i + j) % 2 == 0 { 1.0 } else { 0.0 })),
        intercept: vec![0.25; 5],
        inputs: names(2),
        outputs: names(5),
        facts: GaussianFacts {
            penalties: (0.1, 0.1),
            solver: String::new(),
            objective: 0.0,
            violation: 0.0,
            iterations: 0,
            converged: true,
            intercept: true,
            standardize: false,
            refit: false,
            samples: 0,
            data: String::new(),
        },
    }
}

/// Means, and what is left when some outputs are known.
fn forecasts(image: &GaussianImage<'_>, u: &mut Unstructured<'_>) -> Result<()> {
    let view = image.view();
    let (n, p, entries) = (view.inputs(), view.outputs(), view.entries());
    if n.max(p).max(entries) > 1000 {
        return Ok(());
    }
    let device = view.model();
    let x = (0..n).map(|_| u.arbitrary()).collect::<Result<Vec<f32>>>()?;
    let y = (0..p).map(|_| u.arbitrary()).collect::<Result<Vec<f32>>>()?;
    let known = (0..p).map(|_| u.arbitrary()).collect::<Result<Vec<bool>>>()?;
    let (mut mean, mut memory) = (vec![0.0; p], vec![0.0; mean_len(p)]);
    if device.mean(&x, &mut mean, &mut memory).is_err() {
        assert!(mean.iter().all(|m| *m == 0.0));
    }
    assert!(mean.iter().all(|m| m.is_finite()));
    let mut kept = vec![0.0; given_len(p, entries)];
    if let Ok(given) = device.given(&known, &mut kept) {
        let _ = given.revise(&y, &mut mean, &mut memory);
        let mut deviations = vec![0.0; p];
        given.deviations(&mut deviations, &mut vec![0.0; deviations_len(p, entries)]).expect("enough memory");
    }
    let long =
        |name: Option<gibbsite_core::image::Text<'_>>| name.is_some_and(|n| n.count() > 4 * image.bytes());
    assert!(!(0..p).any(|j| long(view.output_name(j))) && !(0..n).any(|i| long(view.input_name(i))));
    Ok(())
}

/// Four outputs, two inputs, weights that are not all alike.
fn field_model(structure: &Structure) -> FieldModel {
    let table = Table::read(b"a,b,c,d,x,k\n0,0,0,0,1,u\n1,1,1,1,3,v\n2,1,1,1,2,v\n").expect("a good table");
    let columns = Columns::choose(&table, "a,b,c,d", "x,k").expect("its columns");
    let (schema, _) = Schema::learn(&table, &columns, false, true).expect("a schema");
    let field = schema.field(structure).expect("four variables");
    let index = index(&field, &schema.template_attributes(&field), Optimize::Joint).expect("small");
    let theta = (0..index.len()).map(|i| (i % 7) as f64 / 3.0 - 1.0).collect();
    FieldModel { schema, structure: String::new(), field, index, theta, facts: field::Facts::default() }
}

/// The junction tree, with what only one kind of numbers has.
fn junction<W: Weight>(
    view: &FieldView<'_, W>,
    graph: FactorGraph<'_, W::Score>,
    sums: impl FnOnce(&mut Junction<'_, '_, W::Score>, &mut Sequential<'_, W::Score>),
) -> Option<()> {
    let mut counters = vec![0; Plan::open_len(graph.variables(), graph.factors())];
    let plan = view.plan(&graph, &mut counters).ok()?;
    if plan.messages_len().max(plan.belief_len()).max(plan.separator_len()).max(plan.temp_len()) > 1 << 16 {
        return None;
    }
    let zeros = |len| vec![W::Score::default(); len];
    let (mut messages, mut belief) = (zeros(plan.messages_len()), zeros(plan.belief_len()));
    let (mut separator, mut index) = (zeros(plan.separator_len()), vec![0; plan.index_len()]);
    let (mut facts, mut starts) = (vec![Fact::default(); plan.clusters()], vec![0; graph.variables()]);
    let mut temp = zeros(plan.temp_len());
    let mut fork = Sequential { temp: &mut temp };
    let memory = Memory {
        messages: &mut messages,
        facts: &mut facts,
        belief: &mut belief,
        separator: &mut separator,
        index: &mut index,
        starts: &mut starts,
    };
    let mut run = Junction::new(plan, graph, memory).ok()?;
    sums(&mut run, &mut fork);
    let mut labels = vec![0; graph.variables()];
    if run.maximise(&mut fork).is_ok() && run.decode(&mut labels).is_ok() {
        assert!(labels.iter().zip(graph.cards()).all(|(l, c)| l < c));
    }
    Some(())
}

/// The tables of a sample.
fn tables<W: Weight>(
    view: &FieldView<'_, W>,
    u: &mut Unstructured<'_>,
    value: impl Fn(&mut Unstructured<'_>) -> Result<W::Value>,
) -> Result<Option<Vec<W::Score>>> {
    let attributes = view.image().attributes() as u32;
    let item = (0..u.int_in_range(0..=3)?).map(|_| Ok((u.int_in_range(0..=attributes)?, value(u)?)));
    let item = item.collect::<Result<Vec<_>>>()?;
    let mut tables = vec![W::Score::default(); view.image().tables_len()];
    if view.tables(&item, &mut tables).is_err() && view.tables(&[], &mut tables).is_err() {
        return Ok(None);
    }
    let _ = view.observe(&mut tables, u.int_in_range(0..=4)?, u.int_in_range(0..=3)?);
    let _ = view.error_bound(&item.iter().copied().take(1).collect::<Vec<_>>());
    Ok(Some(tables))
}

/// Labels that no change of one makes better; the incidence for more.
fn ascend<T: Score>(graph: &FactorGraph<'_, T>) -> Vec<u32> {
    let size = Dimensions::of(graph);
    let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
    let incidence = Incidence::build(graph, &mut memory).expect("enough memory");
    let mut labels = vec![0; size.variables];
    let mut scratch = vec![T::default(); icm::scratch_len(&size)];
    let _ = icm::ascend(graph, &incidence, &mut labels, 3, &mut scratch);
    assert!(labels.iter().zip(graph.cards()).all(|(l, c)| l < c));
    labels
}

/// Every engine for graphs on a field.
fn use_field(image: &FieldImage<'_>, u: &mut Unstructured<'_>) -> Result<()> {
    for v in 0..image.variables().min(300) {
        let _ = (image.output(v).map(Iterator::count), image.label(v, 0).map(Iterator::count));
    }
    match image.scalar() {
        Scalar::F32 => use_floats(&image.field().expect("its own scalar"), u),
        Scalar::I16 => use_units::<i16>(&image.field().expect("its own scalar"), u),
        Scalar::I8 => use_units::<i8>(&image.field().expect("its own scalar"), u),
    }
}

fn use_floats(view: &FieldView<'_, f32>, u: &mut Unstructured<'_>) -> Result<()> {
    let Some(tables) = tables(view, u, |u| u.arbitrary())? else { return Ok(()) };
    let Ok(graph) = view.graph(&tables) else { return Ok(()) };
    let labels: u32 = graph.cards().iter().fold(0, |sum, &c| sum.saturating_add(c));
    let _ = junction(view, graph, |run, fork| {
        let mut marginals = vec![0.0; labels as usize];
        if run.sum(fork).is_ok() && run.marginals(fork, &mut marginals).is_ok() {
            assert!(marginals.iter().all(|p| (0.0..1.001).contains(p)));
        }
    });
    let size = Dimensions::of(&graph);
    let (mut words, mut reals) =
        (vec![0; Loopy::<f32>::words_len(&size)], vec![0.0; Loopy::<f32>::reals_len(&size)]);
    for mode in [Mode::Sum, Mode::Max] {
        if let Ok(mut loopy) = Loopy::new(graph, mode, &mut words, &mut reals) {
            let _ = loopy.run(&Params { max_iterations: 3, ..Params::default() });
            let _ = loopy.decode(&mut vec![0; size.variables]);
        }
    }
    ascend(&graph);
    Ok(())
}

fn use_units<W: Weight<Value = i32, Score = i32>>(
    view: &FieldView<'_, W>,
    u: &mut Unstructured<'_>,
) -> Result<()> {
    let Some(tables) = tables(view, u, |u| u.arbitrary())? else { return Ok(()) };
    // What was written is legal, whatever the image and the values.
    let graph = view.graph(&tables).expect("scores in range");
    let labels: u32 = graph.cards().iter().fold(0, |sum, &c| sum.saturating_add(c));
    let _ = junction(view, graph, |run, fork| {
        let Some(table) = view.log_add() else { return };
        let mut marginals = vec![0; labels as usize];
        if run.log_sum(&table, fork).is_ok() && run.log_marginals(&table, fork, &mut marginals).is_ok() {
            assert!(marginals.iter().all(|&log| log <= 0));
        }
    });
    let found = ascend(&graph);
    let size = Dimensions::of(&graph);
    let mut memory = vec![0; Incidence::len(size.variables, size.edges)];
    let incidence = Incidence::build(&graph, &mut memory).expect("enough memory");
    if let Some(table) = view.log_add() {
        let (mut logs, mut scratch) = (vec![0; size.arity], vec![0; size.arity]);
        let _ = log_conditional(&graph, &incidence, &found, 0, &table, &mut logs, &mut scratch);
    }
    Ok(())
}

fn engines<W: Weight>(image: &Image<'_>, u: &mut Unstructured<'_>, value: W::Value) -> Result<Vec<W::Score>> {
    let view = image.chain::<W>().expect("its own scalar");
    let labels = view.labels();
    let lag = u.int_in_range(0..=3)?;
    let mut scores = vec![W::Score::default(); decoder_len(labels)];
    let mut back = vec![0; lagged_back_len(lag, labels)];
    let mut decoder = Decoder::lagged(view, lag, &mut scores, &mut back).expect("enough memory");
    let mut rows = Vec::new();
    for _ in 0..u.int_in_range(0..=4)? {
        let item = (0..u.int_in_range(0..=3)?).map(|_| {
            Ok((u.int_in_range(0..=image.attributes() as u32)?, if u.arbitrary()? { value } else { W::ONE }))
        });
        let item = item.collect::<Result<Vec<_>>>()?;
        let mut row = vec![W::Score::default(); labels];
        if view.score(&item, &mut row).is_ok() {
            rows.extend_from_slice(&row);
        }
        if let Ok(Some(label)) = decoder.push(&item) {
            assert!(usize::from(label) < labels);
        }
    }
    let mut rest = vec![0; decoder.pending()];
    assert!(decoder.finish(&mut rest).is_ok());
    assert!(rest.iter().all(|&l| usize::from(l) < labels));
    let mut plain = vec![0.0; rows.len()];
    view.to_f32(&rows, &mut plain);
    let mut table = vec![0.0; labels * labels];
    view.transitions(&mut table).expect("enough memory");
    if let Ok(chain) = view.plain(&plain, &table) {
        let items = chain.positions();
        let mut singles = vec![0.0; plain.len()];
        let mut memory = vec![0.0; Chain::<f32>::forward_backward_len(items, labels)];
        if chain.forward_backward(&mut singles, None, &mut memory).is_ok() {
            assert!(singles.iter().all(|p| (0.0..1.001).contains(p)));
        }
    }
    Ok(rows)
}

fn marginals<W: Weight<Score = i32>>(image: &Image<'_>, mut rows: Vec<i32>) {
    let view = image.chain::<W>().expect("its own scalar");
    let _ = view.log_marginals(&mut rows, &mut vec![0; marginals_len(view.labels())]);
}

fn use_image(words: &[u32], u: &mut Unstructured<'_>) -> Result<()> {
    if let Ok(field) = FieldImage::open(words) {
        use_field(&field, u)?;
    }
    if let Ok(gaussian) = GaussianImage::open(words) {
        forecasts(&gaussian, u)?;
    }
    let image = match Image::open(words) {
        Ok(image) => image,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Ok(());
        }
    };
    assert!(image.attribute(b"a").is_none_or(|a| (a as usize) < image.attributes()));
    for l in 0..=255 {
        assert!(image.label(l).is_none_or(|name| name.count() <= 4 * words.len()));
    }
    match image.scalar() {
        Scalar::F32 => drop(engines::<f32>(&image, u, f32::from_bits(u32::from_le_bytes([1, 2, 3, 0x40])))?),
        Scalar::I16 => marginals::<i16>(&image, engines::<i16>(&image, u, 12_345)?),
        Scalar::I8 => marginals::<i8>(&image, engines::<i8>(&image, u, i32::MIN)?),
    }
    Ok(())
}

fn check(bytes: &[u8]) -> Result<()> {
    let u = &mut Unstructured::new(bytes);
    let mut words = u.choose(&IMAGES)?.clone();
    for _ in 0..u.int_in_range(0..=4)? {
        let at = u.int_in_range(0..=words.len() - 1)?;
        words[at] = match u.int_in_range(0..=3)? {
            0 => words[at].wrapping_add(1),
            1 => words[at].wrapping_sub(1),
            2 => u.int_in_range(0..=70)?,
            _ => u.arbitrary()?,
        };
    }
    if u.ratio(1, 8)? {
        words.truncate(u.int_in_range(0..=words.len())?);
    }
    if words.len() > 8 {
        words[4] = 0;
        let mut sum = Checksum::default();
        sum.add(&words);
        words[4] = sum.finish();
    }
    use_image(&words, u)
}

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect();
    let _ = use_image(&words, &mut Unstructured::new(bytes));
    let _ = check(bytes);
});
