//! From the wind track of the Global Energy Forecasting Competition 2012 to inputs and outputs for `gibbsite gaussian` (SGCRF Sec. 5.2), with ridge regression on the
//! same features to compare with.
//!
//! ```sh
//! cargo run --release -p gibbsite --example wind -- DATA OUT
//! gibbsite gaussian fit --x OUT/x.npy --y OUT/y.npy --intercept --standardize --cv 5 --cv-contiguous --path 10 --path-ratio 0.1 --tolerance 1e-3 --model OUT/wind.gib
//! gibbsite gaussian predict --model OUT/wind.gib --x OUT/x-test.npy --y OUT/y-test.npy --json
//! ```
//!
//! A row is one forecast, issued every 12 hours: the last 8 hours of power of the 7 farms, and 10 radial basis functions of each of the 48 forecast wind speeds of each farm. Outputs are the
//! 48 hours of power that follow, farm after farm. The last fifth of the time is for testing.

use gibbsite::data::npy;
use gibbsite::data::source::Source;
use gibbsite::linalg::{Cholesky, Dense, product, transposed_product};
use gibbsite::par::Par;
use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

const FARMS: usize = 7;
const AHEAD: usize = 48;
const PAST: i64 = 8;
const BASES: usize = 10;
/// Speeds in m/s that the basis functions lie between; their width is the distance of two.
const FASTEST: f64 = 12.0;

/// Hours since 1 March of the year 0 (days of the proleptic Gregorian calendar by the usual shift of the year to March).
fn hours(date: &str) -> Option<i64> {
    let part = |a: usize, b: usize| date.get(a..b)?.parse::<i64>().ok();
    let (year, month, day, hour) = (part(0, 4)?, part(4, 6)?, part(6, 8)?, part(8, 10)?);
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    Some(24 * days + hour)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, out] = args.as_slice() else { return Err("usage: wind DATA OUT".into()) };
    let (data, out) = (Path::new(data), Path::new(out));
    std::fs::create_dir_all(out)?;
    let mut power: HashMap<i64, Vec<f64>> = HashMap::new();
    for line in text(&data.join("train.csv.gz"))?.lines().skip(1) {
        let mut cells = line.split(',');
        let hour = cells.next().and_then(hours).ok_or("a date that is none")?;
        power.insert(hour, cells.map(str::parse).collect::<Result<_, _>>()?);
    }
    let mut speeds: Vec<HashMap<(i64, usize), f64>> = Vec::new();
    let mut issues = Vec::new();
    for farm in 1..=FARMS {
        let mut own = HashMap::new();
        for line in text(&data.join(format!("windforecasts_wf{farm}.csv.gz")))?.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let issue = cells.first().and_then(|c| hours(c)).ok_or("a date that is none")?;
            let ahead: usize = cells.get(1).ok_or("a short line")?.parse()?;
            if let Some(speed) = cells.get(4).and_then(|c| c.parse().ok()) {
                own.insert((issue, ahead), speed);
            }
            if farm == 1 && ahead == 1 {
                issues.push(issue);
            }
        }
        speeds.push(own);
    }
    issues.sort_unstable();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for issue in issues {
        if let Some((inputs, outputs)) = row(issue, &power, &speeds) {
            x.push(inputs);
            y.push(outputs);
        }
    }
    let cut = x.len() * 4 / 5;
    for (name, rows) in [("x", &x[..cut]), ("y", &y[..cut]), ("x-test", &x[cut..]), ("y-test", &y[cut..])] {
        let values: Vec<f64> = rows.concat();
        std::fs::write(out.join(format!("{name}.npy")), npy::write(rows.len(), rows[0].len(), &values))?;
    }
    let (n, p) = (x[0].len(), y[0].len());
    println!("{cut} rows to learn from, {} to test, {n} inputs, {p} outputs", x.len() - cut);
    Par::all().run(|par| ridge(par, &x, &y, cut));
    Ok(())
}

fn text(path: &Path) -> Result<String, Box<dyn Error>> {
    Ok(String::from_utf8(Source::open(path)?.bytes)?)
}

/// Inputs and outputs of one forecast; none if something is missing.
fn row(
    issue: i64,
    power: &HashMap<i64, Vec<f64>>,
    speeds: &[HashMap<(i64, usize), f64>],
) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut inputs = Vec::new();
    for back in 0..PAST {
        inputs.extend(power.get(&(issue - back))?);
    }
    let spacing = FASTEST / (BASES - 1) as f64;
    for own in speeds {
        for ahead in 1..=AHEAD {
            let speed = own.get(&(issue, ahead))?;
            inputs.extend((0..BASES).map(|k| {
                let z = (speed - k as f64 * spacing) / spacing;
                (-0.5 * z * z).exp()
            }));
        }
    }
    let mut outputs = Vec::new();
    for farm in 0..FARMS {
        for ahead in 1..=AHEAD {
            outputs.push(*power.get(&(issue + ahead as i64))?.get(farm)?);
        }
    }
    Some((inputs, outputs))
}

/// Ridge regression in its dual form, standardised, with an intercept: the error on the test rows for each strength, the best one chosen on the last fifth of the others.
fn ridge(par: Par, x: &[Vec<f64>], y: &[Vec<f64>], cut: usize) {
    let strengths: Vec<f64> = (-2..=8).map(|k| 10f64.powf(0.5 * f64::from(k))).collect();
    let tried: Vec<f64> =
        strengths.iter().map(|&s| ridge_error(par, &x[..cut], &y[..cut], cut * 4 / 5, s)).collect();
    let best = (0..tried.len()).reduce(|a, b| if tried[b] < tried[a] { b } else { a }).unwrap_or(0);
    println!(
        "ridge: strength {:.3}, mse {:.6}",
        strengths[best],
        ridge_error(par, x, y, cut, strengths[best])
    );
}

fn ridge_error(par: Par, x: &[Vec<f64>], y: &[Vec<f64>], cut: usize, strength: f64) -> f64 {
    let matrix = |rows: &[Vec<f64>]| Dense::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j]);
    let (mut own, mut new) = (matrix(&x[..cut]), matrix(&x[cut..]));
    let (mut target, truth) = (matrix(&y[..cut]), matrix(&y[cut..]));
    let mut means = Vec::new();
    for j in 0..own.cols() {
        let mean = own.col(j).iter().sum::<f64>() / cut as f64;
        let variance = own.col(j).iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / cut as f64;
        let by = if variance > 0.0 { variance.sqrt().recip() } else { 0.0 };
        own.col_mut(j).iter_mut().chain(new.col_mut(j)).for_each(|v| *v = (*v - mean) * by);
    }
    for j in 0..target.cols() {
        let mean = target.col(j).iter().sum::<f64>() / cut as f64;
        target.col_mut(j).iter_mut().for_each(|v| *v -= mean);
        means.push(mean);
    }
    let turned = own.transposed();
    let mut gram = transposed_product(par, &turned, &turned);
    (0..cut).for_each(|i| gram.add(i, i, strength * cut as f64 / 10.0));
    if let Some(factor) = Cholesky::new(&gram) {
        factor.solve(&mut target);
    }
    let found = product(par, &product(par, &new, &turned), &target);
    let cells = truth.values().len() as f64;
    let square = |j: usize| {
        let both = found.col(j).iter().zip(truth.col(j));
        both.map(|(f, t)| (f + means[j] - t).powi(2)).sum::<f64>()
    };
    (0..truth.cols()).map(square).sum::<f64>() / cells
}
