//! Learning: a chain in flash, weights in RAM beside it, corrections of the labels that the chain gives.

use crate::engines::{Answer, Done, Stop};
use crate::images::{Tagging, chain, part};
use gibbsite_core::image::ChainView;
use gibbsite_core::infer::stream::{decoder_len, whole_back_len};
use gibbsite_core::online::{OnlineParams, Overlay, overlay_len};

/// How fast: `core/c/example/learn.c` has the same.
const PARAMS: OnlineParams<f32> =
    OnlineParams { rate: 0.5, decay: 0.015_625, l2: 0.000_976_562_5, l1: 0.000_976_562_5 };
/// How often the sequence is learned.
const PASSES: usize = 2;

/// A sequence of items with their attributes.
type Items<'i> = &'i [&'i [(u32, f32)]];

/// The labels of the items by what was learned and the image.
#[inline(never)]
fn label(
    view: &ChainView<'_, f32>,
    overlay: &Overlay<'_, f32>,
    items: Items<'_>,
    labels: &mut [u8],
    scores: &mut [f32],
    back: &mut [u8],
) -> Result<(), Stop> {
    let mut made = view.decoder(scores, back);
    // Used where it was made: `?` would have a second one on the stack.
    let decoder = made.as_mut().map_err(|error| *error)?;
    for item in items {
        overlay.push(decoder, item, item)?;
    }
    decoder.finish(labels)?;
    Ok(())
}

/// The scores of an item's labels between its neighbours.
#[inline(never)]
fn between(
    view: &ChainView<'_, f32>,
    item: &[(u32, f32)],
    given: &[u8],
    t: usize,
    row: &mut [f32],
) -> Result<(), Stop> {
    let at = |t: usize| given.get(t).copied().map(usize::from);
    row.fill(0.0);
    view.score(item, row)?;
    view.add_neighbours(t.checked_sub(1).and_then(at), at(t + 1), row)?;
    Ok(())
}

/// One step for each item, whose labels are `given`; returns `log P` of the last before its step.
#[inline(never)]
fn learn(
    view: &ChainView<'_, f32>,
    overlay: &mut Overlay<'_, f32>,
    items: Items<'_>,
    given: &[u8],
    memory: &mut [f32],
) -> Result<f32, Stop> {
    let (row, memory) = memory.split_at_mut_checked(view.labels()).ok_or(Stop::Memory)?;
    let mut log = 0.0;
    for (t, (item, &label)) in items.iter().zip(given).enumerate() {
        between(view, item, given, t, row)?;
        log = overlay.learn(item, row, usize::from(label), &PARAMS, memory)?;
    }
    Ok(log)
}

/// Labels a sequence, is told that every third label is the next one instead, learns, and labels it again. The answer: the
/// weights, the last item's log-probability before its last step, and the labels.
pub fn learn_f32(call: &mut Tagging<'_>) -> Answer {
    let opened = chain::<f32>(call.words);
    let view = opened.as_ref().map_err(|error| *error)?;
    let (labels, items) = (view.labels(), call.floats);
    // Every attribute has a slot of its own number.
    let slots = view.image().attributes();
    let len = overlay_len(labels, slots);
    let (weights, rest) = call.answer.split_at_mut_checked(len).ok_or(Stop::Memory)?;
    let scores = part(call.reals, decoder_len(labels))?;
    let back = part(call.back, whole_back_len(view.longest(), labels))?;
    let given = part(call.labels, items.len())?;
    let mut overlay = Overlay::new(labels, slots, weights)?;
    label(view, &overlay, items, given, scores, back)?;
    for label in given.iter_mut().step_by(3) {
        *label = if usize::from(*label) + 1 < labels { *label + 1 } else { 0 };
    }
    for _ in 0..PASSES {
        let log = learn(view, &mut overlay, items, given, scores)?;
        *rest.first_mut().ok_or(Stop::Memory)? = log;
    }
    label(view, &overlay, items, given, scores, back)?;
    Ok(Done { floats: len + 1, labels: items.len(), memory: 4 * (len + scores.len()) + back.len() })
}
