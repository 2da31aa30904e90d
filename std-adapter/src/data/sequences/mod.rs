//! Labelled sequences for chain CRFs, from CRFsuite files or from columns and a template.
//!
//! Text is cut into chunks, CRFsuite files at line ends and columns at blank lines, which threads read on their own; what they
//! found is joined in the order of the text while the next chunks are read. Neither numbers nor messages depend on how many
//! threads there are or where the cuts lie.
//!
//! For training, dictionaries grow ([`read`]); to use a model they are those of the model ([`read_known`]), and what they do not
//! have is skipped and counted.

mod columns;
mod crfsuite;
mod dictionary;
mod part;
mod rare;
mod spill;
mod store;
mod template;

pub use dictionary::{Alphabet, Dictionary, DictionaryError};
pub use spill::{Spilled, Supply};
pub use store::{Attributes, Gold, SequenceView, Sequences};
pub use template::{Template, TemplateError};

use super::dataset::block::{self, Cut, Input};
use super::dataset::{Fault, ReadError, without_mark};
use crate::par::Par;
use columns::Shape;
use part::Part;
use rare::Rare;
use spill::Spill;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// `LABEL<TAB>attr[:value]<TAB>…`, an item a line, blank lines between sequences.
    Crfsuite,
    /// Columns separated by spaces or tabs, the label last; a template makes attributes of the others.
    Columns(Template),
}

/// How to read sequences.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadParams {
    /// How the file is written.
    pub format: Format,
    /// Whether the first field or the last column is a label. If not, it is an attribute or a column like the others.
    pub labelled: bool,
    /// Attributes that occur fewer times in the whole file are dropped. Every occurrence counts as one, whatever its value and
    /// the label. (CRFsuite's `feature.minfreq` counts pairs of attribute and label, and adds values.) Only for [`read`].
    pub min_count: u64,
    /// Bytes of text that are read at a time. The result does not depend on it.
    pub chunk: usize,
    /// Threads.
    pub par: Par,
}

impl ReadParams {
    /// Labelled data of this format, all attributes, on one thread.
    pub fn new(format: Format) -> Self {
        Self { format, labelled: true, min_count: 1, chunk: 1 << 20, par: Par::Seq }
    }
}

/// What was noticed while reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines of the file.
    pub lines: usize,
    /// Columns of the file, label too; 0 for other formats.
    pub columns: usize,
    /// Labels that the model does not have, each time they occur, also in sets.
    pub unknown_labels: u64,
    /// Attributes that the model does not have, each time they occur.
    pub unknown_attributes: u64,
    /// Edge attributes that the model does not have, each time they occur.
    pub unknown_edge_attributes: u64,
    /// Different attributes, of items and edges, that were dropped because they are rare.
    pub rare: usize,
    /// How often these occurred.
    pub rare_occurrences: usize,
}

impl Report {
    fn leave_out(&mut self, (different, occurrences): (usize, usize)) {
        self.rare += different;
        self.rare_occurrences += occurrences;
    }
}

/// Sequences and the dictionaries that they made.
#[derive(Clone, Debug, PartialEq)]
pub struct Corpus {
    /// The sequences.
    pub sequences: Sequences,
    /// What labels and attributes are called.
    pub alphabet: Alphabet,
    /// What was noticed.
    pub report: Report,
}

/// Reads a file, or stdin if the path is `-`, packed or not, and makes dictionaries of what it finds.
///
/// # Errors
/// A [`ReadError`] with the line: the file cannot be read or is not what `params` says.
pub fn read(path: impl AsRef<Path>, params: &ReadParams) -> Result<Corpus, ReadError> {
    grown(Input::open(path.as_ref())?, params)
}

/// As [`read`], from something else than a file.
///
/// ```
/// use gibbsite::data::sequences::{Format, Gold, ReadParams, Template, read_from};
/// let template = Template::parse("U00:%x[-1,0]\nU01:%x[0,0]\nB\n")?;
/// let text = "He PRP B-NP\nreckons VBZ B-VP\n\nRight UH ?\n";
/// let corpus = read_from(text.as_bytes(), &ReadParams::new(Format::Columns(template)))?;
/// let first = corpus.sequences.sequence(0);
/// assert_eq!((corpus.sequences.len(), first.items(), first.gold(1)), (2, 2, Gold::label(1)));
/// let names: Vec<_> = first.attributes(1).ids.iter().map(|&id| corpus.alphabet.attributes.name(id).unwrap()).collect();
/// assert_eq!(names, ["U00:He", "U01:reckons"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_from(text: impl Read + Send, params: &ReadParams) -> Result<Corpus, ReadError> {
    grown(Input::unpack(text)?, params)
}

/// Reads a file, or stdin if the path is `-`, with the dictionaries of a model.
///
/// # Errors
/// As [`read`].
pub fn read_known(
    path: impl AsRef<Path>,
    alphabet: &Alphabet,
    params: &ReadParams,
) -> Result<(Sequences, Report), ReadError> {
    known(Input::open(path.as_ref())?, alphabet, params)
}

/// As [`read_known`], from something else than a file.
///
/// ```
/// use gibbsite::data::sequences::{Format, Gold, ReadParams, read_from, read_known_from};
/// let params = ReadParams::new(Format::Crfsuite);
/// let model = read_from(&b"A\tx:0.5\ty\nB\tx\n"[..], &params)?.alphabet;
/// let (sequences, report) = read_known_from(&b"C\tz\ty\n"[..], &model, &params)?;
/// assert_eq!((sequences.gold(), report.unknown_labels, report.unknown_attributes), (&[Gold::UNKNOWN][..], 1, 1));
/// # Ok::<(), gibbsite::data::dataset::ReadError>(())
/// ```
///
/// # Errors
/// As [`read`].
pub fn read_known_from(
    text: impl Read + Send,
    alphabet: &Alphabet,
    params: &ReadParams,
) -> Result<(Sequences, Report), ReadError> {
    known(Input::unpack(text)?, alphabet, params)
}

/// Sequences in a file, and the dictionaries that they made.
#[derive(Debug)]
pub struct SpilledCorpus {
    /// The sequences.
    pub sequences: Spilled,
    /// What labels and attributes are called.
    pub alphabet: Alphabet,
    /// What was noticed.
    pub report: Report,
}

/// As [`read`], for more sequences than memory holds: they go to `file`, which is empty and for this process alone, and dictionaries and numbers are those of [`read`].
///
/// # Errors
/// As [`read`]; also if the file cannot be written.
pub fn read_spilled(
    path: impl AsRef<Path>,
    params: &ReadParams,
    file: File,
) -> Result<SpilledCorpus, ReadError> {
    spilled(Input::open(path.as_ref())?, params, file)
}

/// As [`read_spilled`], from something else than a file.
///
/// # Errors
/// As [`read_spilled`].
pub fn read_spilled_from(
    text: impl Read + Send,
    params: &ReadParams,
    file: File,
) -> Result<SpilledCorpus, ReadError> {
    spilled(Input::unpack(text)?, params, file)
}

fn spilled(input: Input<'_>, params: &ReadParams, file: File) -> Result<SpilledCorpus, ReadError> {
    let mut spill = Spill::new(file);
    let (mut part, mut report) = run(input, None, params, Some(&mut spill))?;
    part.end_sequence();
    spill.push(&part.take_ended())?;
    let (rest, mut alphabet) = part.finish();
    let mut sequences = spill.finish(rest.sets)?;
    if params.min_count > 1 {
        let [mut own, mut edges] = [&alphabet.attributes, &alphabet.edge_attributes].map(Rare::new);
        sequences.each(&mut |part| {
            own.count(&part.attributes);
            edges.count(&part.edges);
        })?;
        report.leave_out(own.decide(&mut alphabet.attributes, params.min_count));
        report.leave_out(edges.decide(&mut alphabet.edge_attributes, params.min_count));
        if report.rare > 0 {
            sequences.rewrite(&mut |part| {
                own.drop(&mut part.attributes, part.values.as_mut());
                edges.drop(&mut part.edges, None);
            })?;
        }
    }
    Ok(SpilledCorpus { sequences, alphabet, report })
}

fn grown(input: Input<'_>, params: &ReadParams) -> Result<Corpus, ReadError> {
    let (part, mut report) = run(input, None, params, None)?;
    let (mut sequences, mut alphabet) = part.finish();
    if params.min_count > 1 {
        let Sequences { attributes, values, edges, .. } = &mut sequences;
        let mut drop = |lists: &mut _, values, names: &mut _| {
            let mut rare = Rare::new(names);
            rare.count(lists);
            report.leave_out(rare.decide(names, params.min_count));
            rare.drop(lists, values);
        };
        drop(attributes, values.as_mut(), &mut alphabet.attributes);
        drop(edges, None, &mut alphabet.edge_attributes);
    }
    Ok(Corpus { sequences, alphabet, report })
}

fn known(
    input: Input<'_>,
    alphabet: &Alphabet,
    params: &ReadParams,
) -> Result<(Sequences, Report), ReadError> {
    let (part, report) = run(input, Some(alphabet), params, None)?;
    Ok((part.finish().0, report))
}

/// Blocks of text are this many chunks: enough for some threads.
const BLOCK: usize = 16;

fn run<'a>(
    input: Input<'_>,
    alphabet: Option<&'a Alphabet>,
    params: &ReadParams,
    mut spill: Option<&mut Spill>,
) -> Result<(Part<'a>, Report), ReadError> {
    let (whole, columns, items) = params.par.run(|par| {
        let mut reader =
            Reader { params, alphabet, shape: None, whole: Part::new(alphabet), pending: Vec::new() };
        let mut items = 0;
        let mut start = true;
        input.blocks(params.chunk.saturating_mul(BLOCK), reader.cut(), par, |text| {
            let text = if std::mem::take(&mut start) { without_mark(text) } else { text };
            reader.block(text, par)?;
            if let Some(spill) = &mut spill
                && reader.whole.entries() >= params.chunk
            {
                let ended = reader.whole.take_ended();
                items += ended.items();
                spill.push(&ended)?;
            }
            Ok(())
        })?;
        reader.absorb();
        let columns = reader.shape.map_or(0, |shape| shape.columns);
        items += reader.whole.items();
        Ok((reader.whole, columns, items))
    })?;
    if items == 0 {
        let expected = match params.format {
            Format::Crfsuite => "`LABEL<TAB>attribute<TAB>…`, an item a line",
            Format::Columns(_) => "columns of words, an item a line",
        };
        let found = if whole.lines == 0 { "the file is empty" } else { "found only blank lines" };
        return Err(ReadError::Whole(format!("{found}, expected {expected}")));
    }
    let report = Report {
        lines: whole.lines,
        columns,
        unknown_labels: whole.unknown.labels,
        unknown_attributes: whole.unknown.attributes,
        unknown_edge_attributes: whole.unknown.edge_attributes,
        ..Report::default()
    };
    Ok((whole, report))
}

/// Reads one block after the other.
struct Reader<'a, 'p> {
    params: &'p ReadParams,
    alphabet: Option<&'a Alphabet>,
    /// That of columns, once the first row has been seen.
    shape: Option<Shape>,
    whole: Part<'a>,
    /// Parts of the last block, without faults, for `whole`.
    pending: Vec<Part<'a>>,
}

impl<'a> Reader<'a, '_> {
    /// Items of a CRFsuite file stand alone; templates need all of a sequence.
    fn cut(&self) -> Cut {
        match self.params.format {
            Format::Crfsuite => Cut::Lines,
            Format::Columns(_) => Cut::Paragraphs,
        }
    }

    fn block(&mut self, text: &[u8], par: Par) -> Result<(), ReadError> {
        if let Format::Columns(template) = &self.params.format
            && self.shape.is_none()
        {
            // No part is pending that has rows, but blank lines may be.
            let lines = self.whole.lines + self.pending.iter().map(|part| part.lines).sum::<usize>();
            let labelled = self.params.labelled;
            if let Some(shape) = Shape::of(text, lines, labelled) {
                let data = shape.columns - usize::from(labelled);
                template.check(data, labelled).map_err(ReadError::Whole)?;
                self.shape = Some(shape);
            }
        }
        let (params, shape) = (self.params, self.shape);
        let parse = |chunk: &[u8], part: &mut Part<'a>| match &params.format {
            Format::Crfsuite => crfsuite::parse(chunk, params.labelled, part),
            Format::Columns(template) => match shape {
                Some(shape) => columns::parse(chunk, template, shape, part),
                // Blank lines at the start of the file are all there is.
                None => crfsuite::parse(chunk, false, part),
            },
        };
        let chunks = block::chunks(text, params.chunk, self.cut());
        if par == Par::Seq {
            return chunks
                .into_iter()
                .try_for_each(|chunk| parse(chunk, &mut self.whole).map_err(|fault| fault.after(0)));
        }
        let alphabet = self.alphabet;
        let ((), parts) = par.join(
            || self.absorb(),
            || {
                par.map(chunks, |chunk| -> Result<Part<'a>, Fault> {
                    let mut part = Part::new(alphabet);
                    parse(chunk, &mut part).map(|()| part)
                })
            },
        );
        let mut lines = self.whole.lines;
        for part in parts {
            let part = part.map_err(|fault| fault.after(lines))?;
            lines += part.lines;
            self.pending.push(part);
        }
        Ok(())
    }

    fn absorb(&mut self) {
        for part in self.pending.drain(..) {
            self.whole.absorb(part);
        }
    }
}
