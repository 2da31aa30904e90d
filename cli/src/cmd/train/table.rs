//! From the columns of a table to a field.

use super::choose::{Chosen, choose};
use super::{Followed, Held, blame, converged, report_run, restore, text, trace_json};
use crate::cmd::file_name;
use crate::config::{Shape, Train, TrainTable};
use crate::progress::{catch_ctrl_c, interrupted};
use crate::{Outcome, output};
use gibbsite::data::source::Source;
use gibbsite::data::table::{Table, close, pairs};
use gibbsite::field::cv::cross_validate;
use gibbsite::field::predict::{TableScore, Want, predict};
use gibbsite::field::schema::{Columns, Report, Slot};
use gibbsite::field::train::{Choice, Estimator, Optimize, Solver, TrainInfo, TrainParams, index, train};
use gibbsite::field::{FieldData, Schema, Structure};
use gibbsite::model::FieldModel;
use gibbsite::model::field::Facts;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

pub(super) fn run(config: &Train, task: &TrainTable) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let begin = Instant::now();
    let table = read(&config.data)?;
    let mut columns =
        Columns::choose(&table, &task.outputs, &task.inputs).map_err(|e| blame(&config.data, &e))?;
    if let Some(path) = &task.input_map {
        columns.map = Some(input_map(path, &table, &columns)?);
    }
    let (schema, remarks) =
        Schema::learn(&table, &columns, task.share, task.standardize).map_err(|e| blame(&config.data, &e))?;
    remarks.iter().for_each(|remark| common.warn(remark));
    let structure = match &task.structure {
        Shape::Known(structure) => structure.clone(),
        Shape::File(path) => Structure::Edges(edges(path, &schema)?),
    };
    let field = schema.field(&structure).map_err(|e| anyhow::anyhow!("--structure: {e}"))?;
    let (data, report) = schema.samples(&table, &field).map_err(|e| blame(&config.data, &e))?;
    drop(table);
    let mut params = with_components(task)?;
    let attributes = schema.template_attributes(&field);
    let index = index(&field, &attributes, params.optimize).map_err(|e| blame(&config.data, &e))?;
    let read_seconds = begin.elapsed().as_secs_f64();
    remark(config, &schema, &data, &report, read_seconds);
    let items = data.samples() * data.variables() - report.missing;
    let facts = Facts {
        optimize: if params.optimize == Optimize::Joint { "joint" } else { "disjoint" }.into(),
        rows: data.samples(),
        items,
        data: file_name(&config.data),
        ..Facts::default()
    };
    let structure = task.structure_name.clone();
    let mut model = FieldModel { schema, structure, field, index, theta: Vec::new(), facts };
    let held = config.holdout.as_deref().map(|path| accuracy(config, task, &model, path)).transpose()?;
    let resumed = restore(config)?;
    catch_ctrl_c();
    let start = Instant::now();
    let chosen =
        choose(config, |how, watch| cross_validate(&model, &data, &params, how, watch, &|| !interrupted()))?;
    chosen.set(&mut params.l1, &mut params.l2);
    let mut followed = Followed::new(config, held);
    let late = followed.late;
    let trained = train(
        &model.field,
        &model.index,
        &data,
        &params,
        resumed,
        &mut |point, state| followed.step(point, state),
        &|| late || !interrupted(),
    );
    let (state, info) = trained.map_err(|e| blame(&config.data, &e))?;
    let seconds = start.elapsed().as_secs_f64();
    followed.finish(&state)?;
    let held = std::mem::take(&mut followed.accuracies);
    drop(followed);
    common.log(|| format!("maximised {}: {}", info.estimator, parts(&info)));
    let converged =
        converged(config, &info.solver) && chosen.converged() && rests(config, &info, data.samples());
    model.theta = state.into_theta();
    let end = &info.solver.end;
    model.facts.estimator.clone_from(&info.estimator);
    model.facts.solver = match params.solver {
        Solver::Shotgun => "shotgun",
        Solver::QuasiNewton if params.l1 > 0.0 => "owlqn",
        Solver::QuasiNewton => "lbfgs",
    }
    .into();
    (model.facts.l1, model.facts.l2) = (params.l1, params.l2);
    model.facts.objective = end.objective;
    model.facts.violation = end.violation;
    model.facts.iterations = end.iterations;
    model.facts.converged = converged;
    output::write(Some(&config.model), &model.to_bytes())?;
    let time = (seconds, read_seconds);
    let text = if common.json {
        report_json(&model, &info, &chosen, converged, time, &held)
    } else {
        report_text(&model, &info, &chosen, converged, time, &held)
    };
    output::write(common.output.as_deref(), text.as_bytes())?;
    Ok(if converged { Outcome::Done } else { Outcome::Unconverged })
}

/// Reads a table; errors begin with the file's name.
pub(in crate::cmd) fn read(path: &Path) -> anyhow::Result<Table> {
    let source = Source::open(path)?;
    Table::read(&source.bytes).map_err(|e| blame(path, &e))
}

/// Pairs of names from a CSV file, as numbers.
fn named_pairs(
    path: &Path,
    titles: [&str; 2],
    names: [&[String]; 2],
    what: [&str; 2],
) -> anyhow::Result<Vec<[u32; 2]>> {
    let source = Source::open(path)?;
    let known = |name: &str| names.iter().any(|list| list.iter().any(|n| n == name));
    let rows = pairs(&source.bytes, titles, known).map_err(|e| blame(path, &e))?;
    let number = |line: u64, name: &str, side: usize| {
        let place = names[side].iter().position(|n| n == name);
        place.map(|at| at as u32).ok_or_else(|| {
            let close = close(name, names[side]);
            let close: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
            let hint = if close.is_empty() {
                String::new()
            } else {
                format!("; close ones are {}", close.join(", "))
            };
            blame(path, &format!("line {line}: found no {} `{name}`{hint}", what[side]))
        })
    };
    rows.iter().map(|(line, [a, b])| Ok([number(*line, a, 0)?, number(*line, b, 1)?])).collect()
}

fn edges(path: &Path, schema: &Schema) -> anyhow::Result<Vec<[u32; 2]>> {
    let outputs = schema.outputs.as_slice();
    let edges = named_pairs(path, ["a", "b"], [outputs; 2], ["output"; 2])?;
    let mut sorted: Vec<[u32; 2]> = Vec::new();
    for &[a, b] in &edges {
        let (x, y) = (&outputs[a as usize], &outputs[b as usize]);
        if a == b {
            return Err(blame(path, &format!("an edge joins `{x}` to itself")));
        }
        let edge = [a.min(b), a.max(b)];
        if let Err(at) = sorted.binary_search(&edge) {
            sorted.insert(at, edge);
        } else {
            return Err(blame(path, &format!("the edge between `{x}` and `{y}` is there twice")));
        }
    }
    Ok(edges)
}

fn input_map(path: &Path, table: &Table, columns: &Columns) -> anyhow::Result<Vec<Vec<u32>>> {
    let named = |list: &[usize]| list.iter().map(|&c| table.names()[c].clone()).collect::<Vec<_>>();
    let (outputs, inputs) = (named(&columns.outputs), named(&columns.inputs));
    let rows = named_pairs(path, ["output", "input"], [&outputs, &inputs], ["output", "input"])?;
    let mut map = vec![vec![]; outputs.len()];
    for [output, input] in rows {
        let list: &mut Vec<u32> = &mut map[output as usize];
        if list.contains(&input) {
            let (output, input) = (&outputs[output as usize], &inputs[input as usize]);
            return Err(blame(path, &format!("`{output},{input}` is there twice")));
        }
        list.push(input);
    }
    Ok(map)
}

fn with_components(task: &TrainTable) -> anyhow::Result<TrainParams> {
    let mut params = task.params.clone();
    if let Some(path) = &task.components {
        params.estimator = Estimator::Composite(Choice::Text(text(path)?));
    }
    Ok(params)
}

/// Whether the end is not what belief propagation left restless; says what is an estimate.
fn rests(config: &Train, info: &TrainInfo, rows: usize) -> bool {
    if info.estimated {
        config.common.warn("inference was too wide to be exact: objective and gradient are estimates");
    }
    if info.restless > 0 {
        config.common.warn(&format!(
            "belief propagation did not come to rest in {} of {} rows at the end: the weights may be far off; use --inference gibbs or --estimator composite",
            info.restless, rows
        ));
    }
    info.restless == 0
}

fn remark(config: &Train, schema: &Schema, data: &FieldData, report: &Report, seconds: f64) {
    let discrete = schema.slots.iter().filter(|slot| matches!(slot, Slot::Values(_))).count();
    config.common.log(|| {
        format!(
            "read {} rows, {} outputs ({} labels missing), {} inputs ({discrete} discrete) in {seconds:.3} s",
            data.samples(),
            schema.outputs.len(),
            report.missing,
            schema.inputs.len(),
        )
    });
}

/// Accuracy on held-out rows.
fn accuracy<'a>(
    config: &'a Train,
    task: &'a TrainTable,
    model: &FieldModel,
    path: &Path,
) -> anyhow::Result<Held<'a>> {
    let table = read(path)?;
    let (data, report) = model.schema.samples(&table, &model.field).map_err(|e| blame(path, &e))?;
    if let Some(&output) = report.absent.first() {
        let name = &model.schema.outputs[output as usize];
        return Err(blame(path, &format!("found no column `{name}`, which is an output")));
    }
    let mut model = model.clone();
    Ok(Box::new(move |theta| {
        model.theta.clear();
        model.theta.extend_from_slice(theta);
        let want = Want { labels: true, ..Want::default() };
        let found = predict(&model, &data, want, task.params.max_table_mib, config.common.par).ok()?;
        let score = TableScore::of(&model.schema, &data, &report, &found);
        Some(score.right as f64 / score.items.max(1) as f64)
    }))
}

fn parts(info: &TrainInfo) -> String {
    match info.components {
        0 => "each factor by itself".into(),
        1 => "one component of all outputs".into(),
        n => format!("{n} components"),
    }
}

fn report_json(
    model: &FieldModel,
    info: &TrainInfo,
    chosen: &Chosen,
    converged: bool,
    (seconds, read_seconds): (f64, f64),
    held: &[f64],
) -> String {
    let end = &info.solver.end;
    let mut value = json!({
        "objective": end.objective,
        "log_likelihood": info.log_likelihood,
        "violation": end.violation,
        "iterations": end.iterations,
        "evaluations": end.evaluations,
        "start_iterations": info.start_iterations,
        "converged": converged,
        "estimator": info.estimator,
        "optimize": model.facts.optimize,
        "components": info.components,
        "exact": !info.estimated,
        "parameters": model.index.len(),
        "nonzeros": end.nonzeros,
        "outputs": model.schema.outputs.len(),
        "inputs": model.schema.inputs.len(),
        "edges": model.edges().count(),
        "rows": model.facts.rows,
        "items": model.facts.items,
        "holdout_accuracy": held.last(),
        "seconds": seconds,
        "read_seconds": read_seconds,
        "peak_rss_mib": crate::cmd::peak_rss_mib(),
        "trace": trace_json(&info.solver, held),
    });
    chosen.add_json(&mut value);
    format!("{value}\n")
}

fn report_text(
    model: &FieldModel,
    info: &TrainInfo,
    chosen: &Chosen,
    converged: bool,
    time: (f64, f64),
    held: &[f64],
) -> String {
    let mut text = chosen.table("row");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16} {value}");
    };
    let (facts, schema) = (&model.facts, &model.schema);
    line("rows", format!("{} ({} labels)", facts.rows, facts.items));
    let (outputs, edges, inputs) = (schema.outputs.len(), model.edges().count(), schema.inputs.len());
    line("field", format!("{outputs} outputs, {edges} edges ({}), {inputs} inputs", model.structure));
    line("parameters", format!("{} ({} not 0)", model.index.len(), info.solver.end.nonzeros));
    let how = if facts.optimize == "joint" { "" } else { ", disjoint" };
    line("estimator", format!("{}{how}: {}", info.estimator, parts(info)));
    if let Some(log_likelihood) = info.log_likelihood {
        line("log-likelihood", log_likelihood.to_string());
    }
    report_run(&mut text, &info.solver, converged, time, held);
    text
}
