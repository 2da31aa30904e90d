//! `gibbsite infer`: queries on a factor graph.

use super::{name, read_evidence, read_model};
use crate::{Outcome, config, output};
use gibbsite::data::uai;
use gibbsite::infer::{Answer, QueryError, Task, infer};
use serde_json::{Value, json};
use std::time::Instant;

pub(crate) fn run(config: &config::Infer) -> anyhow::Result<Outcome> {
    let common = &config.common;
    let start = Instant::now();
    let model = read_model(&config.model)?;
    let cards = model.network.cards();
    let evidence = read_evidence(config.evidence.as_deref(), cards)?;
    let read_seconds = start.elapsed().as_secs_f64();
    common.log(|| {
        let (n, m, e) = (cards.len(), model.network.factors(), evidence.len());
        format!("read {n} variables, {m} factors, {e} observations in {read_seconds:.3} s")
    });
    let answer = infer(&model.network, &evidence, &config.params).map_err(|error| blame(config, &error))?;
    for note in &answer.notes {
        common.warn(note);
    }
    common.log(|| {
        let width = answer.treewidth.map_or(String::new(), |w| format!(", treewidth at most {w}"));
        format!("{} in {:.3} s{width}", answer.method.name(), answer.seconds)
    });
    let mut bytes = Vec::new();
    if common.json {
        serde_json::to_writer(&mut bytes, &as_json(&answer, cards, read_seconds))?;
        bytes.push(b'\n');
    } else {
        match answer.task {
            Task::Partition => uai::write_pr(&mut bytes, answer.log_z.unwrap_or(f64::NAN))?,
            Task::Marginals => {
                uai::write_mar(&mut bytes, cards, answer.marginals.as_deref().unwrap_or_default())?;
            }
            Task::Map => uai::write_map(&mut bytes, answer.assignment.as_deref().unwrap_or_default())?,
        }
    }
    output::write(common.output.as_deref(), &bytes)?;
    Ok(if answer.converged { Outcome::Done } else { Outcome::Unconverged })
}

/// The error, after the file that it is about.
fn blame(config: &config::Infer, error: &QueryError) -> anyhow::Error {
    let model = name(&config.model);
    match (error, &config.evidence) {
        (QueryError::ZeroProbability, Some(evidence)) => anyhow::anyhow!("{}: {error}", name(evidence)),
        (QueryError::ZeroProbability, None) => anyhow::anyhow!(
            "{model}: every configuration has probability zero (log Z = -inf): \
             marginals and the best assignment are undefined"
        ),
        _ => anyhow::anyhow!("{model}: {error}"),
    }
}

fn as_json(answer: &Answer, cards: &[u32], read_seconds: f64) -> Value {
    let marginals = answer.marginals.as_ref().map(|flat| {
        let mut rest = flat.as_slice();
        cards
            .iter()
            .map(|&card| {
                let (own, others) = rest.split_at(card as usize);
                rest = others;
                own.to_vec()
            })
            .collect::<Vec<_>>()
    });
    json!({
        "task": match answer.task {
            Task::Partition => "pr",
            Task::Marginals => "mar",
            Task::Map => "map",
        },
        "method": answer.method.name(),
        "exact": answer.exact,
        "converged": answer.converged,
        "log_z": answer.log_z,
        "marginals": marginals,
        "assignment": answer.assignment,
        "log_potential": answer.log_potential,
        "treewidth": answer.treewidth,
        "notes": answer.notes,
        "seconds": answer.seconds,
        "read_seconds": read_seconds,
    })
}
