//! Learning on the device: weights in RAM beside a chain in flash, changed step by step by labelled items.
//!
//! The weights are the caller's floats: `labels · (1 + slots)` of them, zeros at first. To save what was learned is to keep them
//! and the number of steps; `gibbsite_overlay_open` goes on from there.

use crate::{
    Any, GibbsiteDecoder, GibbsiteFeature, GibbsiteModel, GibbsiteStatus, Made, OVERLAY, Status, decoder,
    image, lend, put, read, room, status, tell, write,
};
use gibbsite_core::image::{ChainView, Image};
use gibbsite_core::online::{OnlineParams, Overlay};

/// What a device has learned: room for what `gibbsite_overlay_open` makes. Not to be looked into.
#[repr(C)]
#[derive(Debug)]
pub struct GibbsiteOverlay {
    /// Not to be looked into.
    pub opaque: [u64; 12],
}

/// How fast and how far an overlay learns: finite numbers that are not negative.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteOnlineParams {
    /// The first step's length.
    pub rate: f32,
    /// Steps become shorter as `rate / (1 + decay·n)`; 0 keeps them as they are, for data that changes.
    pub decay: f32,
    /// Each weight is pulled towards the image's by this, for each item.
    pub l2: f32,
    /// Weights that are not needed become 0.
    pub l1: f32,
}

/// An item for the functions of overlays.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteItem {
    /// Attributes of the image with values.
    pub features: *const GibbsiteFeature,
    /// How many.
    pub count: usize,
    /// Slots of the overlay with values: what is learned about this item beside the labels' biases.
    pub learned: *const GibbsiteFeature,
    /// How many.
    pub learned_count: usize,
    /// The label of the item before; negative if there is none.
    pub before: i32,
    /// The label of the item after; negative if there is none.
    pub after: i32,
}

/// An overlay and the image that it is for.
struct Learned {
    image: Image<'static>,
    overlay: Overlay<'static, f32>,
}

const _: () = assert!(size_of::<Made<Learned>>() <= size_of::<GibbsiteOverlay>());
const _: () = assert!(align_of::<Made<Learned>>() <= align_of::<GibbsiteOverlay>());

impl Learned {
    fn view(&self) -> Result<ChainView<'static, f32>, Status> {
        Ok(self.image.chain::<f32>()?)
    }

    /// A label of C: none if it is negative.
    fn neighbour(&self, label: i32) -> Result<Option<usize>, Status> {
        match usize::try_from(label) {
            Ok(label) if label < self.image.labels() => Ok(Some(label)),
            Ok(_) => Err(Status::Unknown),
            Err(_) => Ok(None),
        }
    }
}

/// Attributes or slots as the core has them.
fn pairs(features: &[GibbsiteFeature]) -> impl Iterator<Item = (u32, f32)> + Clone {
    features.iter().map(|f| (f.attribute, f.value))
}

/// # Safety
/// As for `image` of `lib.rs`, and nobody writes to the handle meanwhile.
unsafe fn learned<'a>(at: *const GibbsiteOverlay) -> Result<&'a Learned, Status> {
    // SAFETY: the caller's promise; only `gibbsite_overlay_open` writes this mark, after a `Learned`.
    unsafe { crate::made(at.cast(), OVERLAY) }
}

/// # Safety
/// As for `image` of `lib.rs`, and nobody else uses the handle meanwhile.
unsafe fn learning<'a>(at: *mut GibbsiteOverlay) -> Result<&'a mut Learned, Status> {
    // SAFETY: the caller's promise; only `gibbsite_overlay_open` writes this mark, after a `Learned`.
    unsafe { crate::made_mut(at, OVERLAY) }
}

/// Makes an overlay for a model with `f32` weights over `weights_count` floats of memory, of which `labels · (1 + slots)` are used: zeros, or
/// weights that were learned before in `steps` steps (0 for zeros). First the biases of all labels, then a row of labels for each slot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_overlay_open(
    overlay: *mut GibbsiteOverlay,
    model: *const GibbsiteModel,
    slots: u32,
    weights: *mut f32,
    weights_count: usize,
    steps: u32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `image`, `lend` and `put` ask for; all bits are floats.
    status(unsafe {
        image(model).and_then(|image| {
            image.chain::<f32>()?;
            let mut made = Overlay::new(image.labels(), slots as usize, lend(weights, weights_count)?)?;
            made.resume(steps);
            let content = Learned { image: *image, overlay: made };
            put(overlay.cast(), Made { mark: OVERLAY, content })
        })
    })
}

/// Tells where the weights of an overlay are, how many, and after how many steps: what there is to save.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_overlay_weights(
    overlay: *const GibbsiteOverlay,
    weights: *mut *const f32,
    count: *mut usize,
    steps: *mut u32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `learned` and `put` ask for.
    status(unsafe {
        learned(overlay).and_then(|Learned { overlay, .. }| {
            room(weights)?;
            room(count)?;
            put(steps, overlay.steps())?;
            put(weights, overlay.weights().as_ptr())?;
            put(count, overlay.weights().len())
        })
    })
}

/// One step towards the label of an item, given the labels of its neighbours. Writes `log P(label)` before the step to
/// `log_probability`, if that is not null. `memory` are twice as many floats as there are labels. On an error nothing is learned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_overlay_learn(
    overlay: *mut GibbsiteOverlay,
    item: *const GibbsiteItem,
    label: u8,
    params: *const GibbsiteOnlineParams,
    log_probability: *mut f32,
    memory: *mut f32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        learning(overlay).and_then(|content| {
            let (Some(item), Some(params)) = (read(item, 1)?.first(), read(params, 1)?.first()) else {
                return Err(Status::Pointer);
            };
            let told = !log_probability.is_null();
            if told {
                room(log_probability)?;
            }
            let label = content.neighbour(i32::from(label))?.ok_or(Status::Unknown)?;
            let (before, after) = (content.neighbour(item.before)?, content.neighbour(item.after)?);
            let view = content.view()?;
            let memory = write(memory, memory_count)?;
            let (row, memory) = memory.split_at_mut_checked(view.labels()).ok_or(Status::Memory)?;
            let slots = pairs(read(item.learned, item.learned_count)?);
            view.score_of(pairs(read(item.features, item.count)?), row)?;
            view.add_neighbours(before, after, row)?;
            let &GibbsiteOnlineParams { rate, decay, l2, l1 } = params;
            let params = OnlineParams { rate, decay, l2, l1 };
            let log = content.overlay.learn_of(slots, row, label, &params, memory)?;
            if told { put(log_probability, log) } else { Ok(()) }
        })
    })
}

/// The scores of an item's labels, `labels` floats: those of its attributes in the image, what was learned about its slots, and
/// those of its neighbours' labels, if it has some. Zeros on an error. Without neighbours they are a row for `gibbsite_marginals`,
/// and scores for `gibbsite_filter_push`; with both neighbours the largest is the label that is best between them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_overlay_score(
    overlay: *const GibbsiteOverlay,
    item: *const GibbsiteItem,
    scores: *mut f32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        learned(overlay).and_then(|content| {
            let item = read(item, 1)?.first().ok_or(Status::Pointer)?;
            let (before, after) = (content.neighbour(item.before)?, content.neighbour(item.after)?);
            let view = content.view()?;
            let (features, slots) =
                (read(item.features, item.count)?, read(item.learned, item.learned_count)?);
            let row = write(scores, view.labels())?;
            let scored = content.overlay.score_of(&view, pairs(features), pairs(slots), row);
            if let Err(error) = scored.and_then(|()| view.add_neighbours(before, after, row)) {
                row.fill(0.0);
                return Err(error.into());
            }
            Ok(())
        })
    })
}

/// `gibbsite_push` with what was learned about the item's slots; its neighbours' labels are not looked at. The decoder is one that
/// was started on the overlay's model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_overlay_push(
    overlay: *const GibbsiteOverlay,
    decoder: *mut GibbsiteDecoder,
    item: *const GibbsiteItem,
    due: *mut bool,
    label: *mut u8,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        learned(overlay).and_then(|content| {
            let Any::F32(decoder) = self::decoder(decoder)? else { return Err(Status::Scalar) };
            if decoder.steps().labels() != content.image.labels() {
                return Err(Status::Unknown);
            }
            room(due)?;
            room(label)?;
            let item = read(item, 1)?.first().ok_or(Status::Pointer)?;
            let (features, slots) =
                (read(item.features, item.count)?, read(item.learned, item.learned_count)?);
            tell(content.overlay.push_of(decoder, pairs(features), pairs(slots))?, due, label)
        })
    })
}
