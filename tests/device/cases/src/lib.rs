//! What the device test runs: every engine of `gibbsite-core` on a small fixed model, the same source on the
//! device and on the desk, so that the bits of the two can be compared.
//!
//! [`engines`] are the calls themselves, on memory that the optimiser knows nothing about (the crate
//! `entries` exports each to C and looks at what it links in); [`models`] makes the models; this file runs
//! engine after engine and writes one line for each.
#![no_std]

pub mod engines;
pub mod fields;
pub mod grid;
pub mod images;
pub mod learn;
pub mod models;
pub mod units;

use engines::{Answer, Call, Done, Engine, Stop};
use gibbsite_core::infer::junction::Fact;
use gibbsite_core::math::Real;
use images::Tagging;
use models::Model;

/// A scalar whose bits can be written.
pub trait Scalar: Real {
    /// The name of the type.
    const NAME: &'static str;
    /// The bits, and how many hexadecimal digits they have.
    fn bits(self) -> (u64, u32);
}

impl Scalar for f32 {
    const NAME: &'static str = "f32";
    fn bits(self) -> (u64, u32) {
        (u64::from(self.to_bits()), 8)
    }
}

impl Scalar for f64 {
    const NAME: &'static str = "f64";
    fn bits(self) -> (u64, u32) {
        (self.to_bits(), 16)
    }
}

/// Where the lines go, and who measures.
pub trait Report {
    /// Writes some text.
    fn text(&mut self, part: &str);
    /// Called just before a case.
    fn start(&mut self) {}
    /// Called just after it: instructions and bytes of stack, where somebody counts them.
    fn stop(&mut self) -> Option<(u64, usize)> {
        None
    }
}

/// All memory that the cases use.
#[derive(Debug)]
pub struct Memory<T> {
    values: [T; 512],
    reals: [T; 4096],
    answer: [T; 1024],
    words: [u32; 2048],
    labels: [u32; 256],
}

impl<T: Copy> Memory<T> {
    /// Filled with `zero`.
    pub const fn new(zero: T) -> Self {
        Self {
            values: [zero; 512],
            reals: [zero; 4096],
            answer: [zero; 1024],
            words: [0; 2048],
            labels: [0; 256],
        }
    }
}

/// Runs every engine and returns how many gave an error. A line of results is
/// `bits SCALAR CASE FLOAT… / LABEL…`, all hexadecimal; where somebody measures, a line
/// `cost SCALAR CASE INSTRUCTIONS STACK MEMORY` follows, in decimal (the last two in bytes).
pub fn run<T: Scalar>(memory: &mut Memory<T>, report: &mut impl Report) -> u32 {
    let mut failures = 0;
    for (name, model, engine) in engines::all::<T>() {
        failures += u32::from(!case(memory, report, name, model, engine));
    }
    failures
}

fn case<T: Scalar>(
    memory: &mut Memory<T>,
    report: &mut impl Report,
    name: &str,
    model: &Model,
    engine: Engine<T>,
) -> bool {
    let Memory { values, reals, answer, words, labels } = memory;
    // On this function's stack: a `Fact` cannot be made in a constant.
    let mut facts = [Fact::default(); 64];
    // What an engine leaves untouched must not depend on the case before it.
    answer.fill(T::zero());
    reals.fill(T::zero());
    words.fill(0);
    labels.fill(0);
    let used = model.fill(values);
    let values = values.get(..used).unwrap_or(&[]);
    let mut call = Call {
        cards: model.cards,
        scope_start: model.scope_start,
        scope: model.scope,
        table_start: model.table_start,
        values,
        plan: model.plan,
        reals,
        words,
        facts: &mut facts,
        answer,
        labels,
    };
    report.start();
    let done = engine(&mut call);
    let cost = report.stop();
    for part in ["bits ", T::NAME, " ", name] {
        report.text(part);
    }
    match done {
        Ok(Done { floats, labels: whole, .. }) => {
            for &v in answer.iter().take(floats) {
                report.text(" ");
                let (bits, digits) = v.bits();
                hexadecimal(report, bits, digits);
            }
            report.text(" /");
            for &v in labels.iter().take(whole) {
                report.text(" ");
                hexadecimal(report, u64::from(v), 4);
            }
        }
        Err(Stop::Graph(_)) => report.text(" error: graph"),
        Err(Stop::Table(_)) => report.text(" error: table"),
        Err(Stop::Infer(_)) => report.text(" error: inference"),
        Err(Stop::Memory) => report.text(" error: the case's memory is too small"),
    }
    report.text("\n");
    told(report, T::NAME, name, cost, &done);
    done.is_ok()
}

/// All memory that the cases with images use.
#[derive(Debug)]
pub struct ImageMemory {
    reals: [f32; 4096],
    scores: [i32; 1024],
    back: [u8; 512],
    answer: [f32; 512],
    labels: [u8; 64],
    words: [u32; 1024],
}

impl ImageMemory {
    /// Zeros.
    pub const fn new() -> Self {
        Self {
            reals: [0.0; 4096],
            scores: [0; 1024],
            back: [0; 512],
            answer: [0.0; 512],
            labels: [0; 64],
            words: [0; 1024],
        }
    }
}

impl Default for ImageMemory {
    fn default() -> Self {
        Self::new()
    }
}

/// As [`run`], every case with an image.
pub fn run_images(memory: &mut ImageMemory, report: &mut impl Report) -> u32 {
    let mut failures = 0;
    for (scalar, name, words, case) in images::all() {
        let ImageMemory { reals, scores, back, answer, labels, words: indices } = memory;
        // On this function's stack: a `Fact` cannot be made in a constant.
        let mut facts = [Fact::default(); 64];
        let mut unit_facts = [Fact::default(); 64];
        indices.fill(0);
        reals.fill(0.0);
        scores.fill(0);
        back.fill(0);
        answer.fill(0.0);
        labels.fill(0);
        let mut call = Tagging {
            words,
            floats: &images::FLOATS,
            fixed: &images::FIXED,
            reals,
            scores,
            back,
            answer,
            labels,
            indices,
            facts: &mut facts,
            unit_facts: &mut unit_facts,
        };
        report.start();
        let done = case(&mut call);
        let cost = report.stop();
        for part in ["bits ", scalar, " ", name] {
            report.text(part);
        }
        match done {
            Ok(Done { floats, labels: whole, .. }) => {
                for &v in answer.iter().take(floats) {
                    report.text(" ");
                    hexadecimal(report, u64::from(v.to_bits()), 8);
                }
                report.text(" /");
                for &v in labels.iter().take(whole) {
                    report.text(" ");
                    hexadecimal(report, u64::from(v), 2);
                }
            }
            Err(_) => report.text(" error"),
        }
        report.text("\n");
        told(report, scalar, name, cost, &done);
        failures += u32::from(done.is_err());
    }
    failures
}

/// The line of costs, where somebody measures.
fn told(report: &mut impl Report, scalar: &str, name: &str, cost: Option<(u64, usize)>, done: &Answer) {
    let Some((instructions, stack)) = cost else { return };
    for part in ["cost ", scalar, " ", name, " "] {
        report.text(part);
    }
    decimal(report, instructions);
    report.text(" ");
    decimal(report, stack as u64);
    report.text(" ");
    decimal(report, done.map_or(0, |d| d.memory as u64));
    report.text("\n");
}

/// Without `core::fmt`, which would dwarf the rest of the image.
fn hexadecimal(report: &mut impl Report, value: u64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = (value >> (4 * place)) as usize & 15;
        report.text("0123456789abcdef".get(digit..digit + 1).unwrap_or("?"));
    }
}

fn decimal(report: &mut impl Report, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut used = 0;
    for slot in digits.iter_mut().rev() {
        *slot = (value % 10) as u8;
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    for &digit in digits.iter().skip(20 - used) {
        hexadecimal(report, u64::from(digit), 1);
    }
}
