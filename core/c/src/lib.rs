//! gibbsite for C: a model image in flash labels sequences, whole or as they arrive, says how sure it is ([`chain`]), and learns from
//! corrections ([`online`]); [`field`]s and Gaussian CRFs ([`gaussian`]) beside it.
//!
//! Handles live in memory of the caller; nothing is allocated. Every function returns a status, and writes its results only if that
//! is [`GibbsiteStatus::Ok`]. The caller promises what C cannot check: that pointers lead to as much memory as is said, that
//! handles are used as they were made and do not move, and that image, handles and memory stay as long as handles are used. Rows of scores
//! are memory too: marginals are computed in their place.
#![no_std]
// One promise for all, above: it would be repeated in every comment of the header.
#![allow(clippy::missing_safety_doc)]

pub mod chain;
pub mod field;
pub mod gaussian;
pub mod online;

use core::panic::PanicInfo;
use core::{ptr, slice};
use gibbsite_core::error::{ImageError, InferError};
use gibbsite_core::image::{ChainView, Image, Scalar, Weight, marginals_len, smooth_len};
use gibbsite_core::infer::stream::{Decoder, decoder_len, filter_len, lagged_back_len, whole_back_len};

/// How a call ended.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GibbsiteStatus {
    /// Done.
    Ok = 0,
    /// A pointer is null or not aligned, or a handle was not made.
    Pointer = 1,
    /// The words are no model image.
    NotAnImage = 2,
    /// The image is for machines of the other byte order.
    Endianness = 3,
    /// The image has another major version.
    Version = 4,
    /// The image is cut off or damaged.
    Damaged = 5,
    /// The image's weights are of another kind than the call is for.
    Scalar = 6,
    /// Memory or room for the answer is too small.
    Memory = 7,
    /// The model has no such attribute, label or name.
    Unknown = 8,
    /// A value or a score is not a finite number.
    BadValue = 9,
    /// More items than the image was made for.
    TooLong = 10,
    /// No labelling is possible.
    Impossible = 11,
}

use GibbsiteStatus as Status;

impl From<ImageError> for Status {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::NotAnImage => Self::NotAnImage,
            ImageError::Endianness => Self::Endianness,
            ImageError::Version { .. } => Self::Version,
            ImageError::Scalar(_) => Self::Scalar,
            _ => Self::Damaged,
        }
    }
}

impl From<InferError> for Status {
    fn from(error: InferError) -> Self {
        match error {
            InferError::Memory { .. } => Self::Memory,
            InferError::Attribute(_) => Self::Unknown,
            InferError::BadValue | InferError::Pivot(_) => Self::BadValue,
            InferError::TooLong { .. } => Self::TooLong,
            InferError::ZeroProbability => Self::Impossible,
            _ => Self::Damaged,
        }
    }
}

/// A model: room for what `gibbsite_open` makes. Not to be looked into.
#[repr(C)]
#[derive(Debug)]
pub struct GibbsiteModel {
    /// Not to be looked into.
    pub opaque: [u64; 6],
}

/// A sequence that is being labelled: room for what `gibbsite_start` makes. Not to be looked into.
#[repr(C)]
#[derive(Debug)]
pub struct GibbsiteDecoder {
    /// Not to be looked into.
    pub opaque: [u64; 36],
}

/// An attribute of an item and its value, for images with `f32` weights.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteFeature {
    /// The attribute's number.
    pub attribute: u32,
    /// Its value.
    pub value: f32,
}

/// An attribute of an item and its value, for images in fixed point.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteFeatureFixed {
    /// The attribute's number.
    pub attribute: u32,
    /// Its value in Q16.16: 65536 is 1.
    pub value: i32,
}

/// Facts about a model.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteFacts {
    /// Labels.
    pub labels: u32,
    /// Attributes.
    pub attributes: u32,
    /// The longest sequence that memory was planned for.
    pub longest: u32,
    /// 0: `f32`, 1: fixed point in 16 bits, 2: in 8 bits.
    pub scalar: u32,
    /// Words of memory that `gibbsite_marginals` or `gibbsite_marginals_fixed` needs.
    pub memory_marginals: u32,
    /// Floats of memory that `gibbsite_filter_start` needs; 0 in fixed point.
    pub memory_filter: u32,
    /// What a unit of fixed point is worth, in natural logarithms; 1 for `f32`.
    pub unit: f32,
}

/// What a handle holds, and a number that shows that it does.
struct Made<T> {
    mark: u32,
    content: T,
}

const MODEL: u32 = 0x6769_6d6f;
const DECODER: u32 = 0x6769_6465;
const GAUSSIAN: u32 = 0x6769_6761;
const FIELD: u32 = 0x6769_6669;
const OVERLAY: u32 = 0x6769_6f76;
const FILTER: u32 = 0x6769_666c;

type Model = Made<Image<'static>>;

enum Any {
    F32(Decoder<'static, ChainView<'static, f32>>),
    I16(Decoder<'static, ChainView<'static, i16>>),
    I8(Decoder<'static, ChainView<'static, i8>>),
}

const _: () = assert!(size_of::<Model>() <= size_of::<GibbsiteModel>());
const _: () = assert!(align_of::<Model>() <= align_of::<GibbsiteModel>());
const _: () = assert!(size_of::<Made<Any>>() <= size_of::<GibbsiteDecoder>());
const _: () = assert!(align_of::<Made<Any>>() <= align_of::<GibbsiteDecoder>());

fn status(result: Result<(), Status>) -> GibbsiteStatus {
    result.err().unwrap_or(Status::Ok)
}

/// Whether so many values can begin here: what can be told of a pointer without following it.
fn within<T>(at: *const T, count: usize) -> Result<(), Status> {
    let short = count.checked_mul(size_of::<T>()).is_some_and(|n| n <= isize::MAX as usize);
    if !at.is_null() && at.is_aligned() && short { Ok(()) } else { Err(Status::Pointer) }
}

/// A slice of what C passed; no memory at all may have any pointer.
///
/// # Safety
/// If not null and aligned, `at` leads to `count` values that nobody writes to for `'a`.
unsafe fn read<'a, T>(at: *const T, count: usize) -> Result<&'a [T], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    within(at, count)?;
    // SAFETY: not null, aligned, not longer than memory can be; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(at, count) })
}

/// The same to write to, filled with zeros: C may not have written anything there yet.
///
/// # Safety
/// If not null and aligned, `at` leads to `count` values of which all zeros is one, and that nobody else uses for `'a`.
unsafe fn write<'a, T>(at: *mut T, count: usize) -> Result<&'a mut [T], Status> {
    if count == 0 {
        return Ok(&mut []);
    }
    within(at, count)?;
    // SAFETY: not null, aligned, not longer than memory can be; zeros make the values initialised; the rest is the caller's promise.
    unsafe {
        ptr::write_bytes(at, 0, count);
        Ok(slice::from_raw_parts_mut(at, count))
    }
}

/// The same with what C has written there.
///
/// # Safety
/// If not null and aligned, `at` leads to `count` initialised values of which all bits are one, and that nobody else uses for `'a`.
unsafe fn lend<'a, T>(at: *mut T, count: usize) -> Result<&'a mut [T], Status> {
    if count == 0 {
        return Ok(&mut []);
    }
    within(at, count)?;
    // SAFETY: not null, aligned, not longer than memory can be; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(at, count) })
}

/// Whether a result can be written here: for calls that would change something before they write it.
fn room<T>(at: *mut T) -> Result<(), Status> {
    within(at, 1)
}

/// Writes a result.
///
/// # Safety
/// If not null and aligned, `at` leads to room for a value.
unsafe fn put<T>(at: *mut T, value: T) -> Result<(), Status> {
    room(at)?;
    // SAFETY: not null, aligned; that there is room is the caller's promise.
    unsafe { ptr::write(at, value) };
    Ok(())
}

/// Writes a result of several numbers.
///
/// # Safety
/// If not null and aligned, `at` leads to room for as many.
unsafe fn give<T: Copy>(at: *mut T, values: &[T]) -> Result<(), Status> {
    room(at)?;
    // SAFETY: not null, aligned; that there is room, and that it is not the memory argument, is the caller's promise.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), at, values.len()) };
    Ok(())
}

/// What a handle holds.
///
/// # Safety
/// If not null and aligned, `at` leads to a handle that was made by the function for it, or to as many other initialised bytes.
unsafe fn image<'a>(at: *const GibbsiteModel) -> Result<&'a Image<'static>, Status> {
    // SAFETY: the caller's promise; only `gibbsite_open` writes this mark.
    unsafe { made(at, MODEL) }
}

/// What a model's handle holds if it has this mark.
///
/// # Safety
/// As for `image`, and the mark is written with a `T` only.
unsafe fn made<'a, T>(at: *const GibbsiteModel, mark: u32) -> Result<&'a T, Status> {
    let at = at.cast::<Made<T>>();
    if at.is_null() || !at.is_aligned() {
        return Err(Status::Pointer);
    }
    // SAFETY: not null and aligned; the mark is read before anything else is believed.
    if unsafe { ptr::read(&raw const (*at).mark) } != mark {
        return Err(Status::Pointer);
    }
    // SAFETY: the mark is written after the content.
    Ok(unsafe { &(*at).content })
}

/// The same for handles that a call changes.
///
/// # Safety
/// As for `made`, and nobody else uses the handle meanwhile.
unsafe fn made_mut<'a, H, T>(at: *mut H, mark: u32) -> Result<&'a mut T, Status> {
    let at = at.cast::<Made<T>>();
    if at.is_null() || !at.is_aligned() {
        return Err(Status::Pointer);
    }
    // SAFETY: not null and aligned; the mark is read before anything else is believed.
    if unsafe { ptr::read(&raw const (*at).mark) } != mark {
        return Err(Status::Pointer);
    }
    // SAFETY: the mark is written after the content.
    Ok(unsafe { &mut (*at).content })
}

/// What a decoder's handle holds.
///
/// # Safety
/// As for `image`, and nobody else uses the handle meanwhile.
unsafe fn decoder<'a>(at: *mut GibbsiteDecoder) -> Result<&'a mut Any, Status> {
    // SAFETY: the caller's promise; only `gibbsite_start` writes this mark, after an `Any`.
    unsafe { made_mut(at, DECODER) }
}

/// Checks an image of `count` words and makes a model of it. The words are used where they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_open(
    model: *mut GibbsiteModel,
    words: *const u32,
    count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about `words` and `model` are those that `read` and `put` ask for.
    status(unsafe {
        read(words, count)
            .and_then(|words| Ok(Image::open(words)?))
            .and_then(|image| put(model.cast::<Model>(), Made { mark: MODEL, content: image }))
    })
}

/// Tells how many labels and attributes a model has, and what its weights are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_facts_of(
    model: *const GibbsiteModel,
    facts: *mut GibbsiteFacts,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about `model` and `facts` are those that `image` and `put` ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let (labels, attributes) = (image.labels() as u32, image.attributes() as u32);
            let (longest, scalar) = (image.longest() as u32, image.scalar() as u32);
            let (smooth, filter) = match image.scalar() {
                Scalar::F32 => (smooth_len(image.labels()), filter_len(image.labels())),
                Scalar::I16 | Scalar::I8 => (marginals_len(image.labels()), 0),
            };
            let (memory_marginals, memory_filter) = (smooth as u32, filter as u32);
            let unit = image.scales().unit;
            put(
                facts,
                GibbsiteFacts { labels, attributes, longest, scalar, memory_marginals, memory_filter, unit },
            )
        })
    })
}

/// Tells how much memory a decoder needs: 32-bit words of scores, and bytes of back pointers. `lag` as in `gibbsite_start`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_memory(
    model: *const GibbsiteModel,
    lag: i32,
    scores: *mut usize,
    back: *mut usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `image` and `put` ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let labels = image.labels();
            let bytes = match usize::try_from(lag) {
                Ok(lag) => lagged_back_len(lag, labels),
                Err(_) => whole_back_len(image.longest(), labels),
            };
            put(scores, decoder_len(labels))?;
            put(back, bytes)
        })
    })
}

/// Finds an attribute by its name of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_attribute(
    model: *const GibbsiteModel,
    name: *const u8,
    length: usize,
    attribute: *mut u32,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `image`, `read` and `put` ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let name = read(name, length)?;
            put(attribute, image.attribute(name).ok_or(Status::Unknown)?)
        })
    })
}

/// Writes the name of a label and a zero byte to `room` bytes at `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_label_name(
    model: *const GibbsiteModel,
    label: u8,
    name: *mut u8,
    room: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `image` and `write` ask for.
    status(unsafe {
        image(model).and_then(|image| {
            let text = image.label(label).ok_or(Status::Unknown)?;
            if text.len() >= room {
                return Err(Status::Memory);
            }
            let out = write(name, text.len() + 1)?;
            out.iter_mut().zip(text).for_each(|(o, b)| *o = b);
            Ok(())
        })
    })
}

fn make<W: Weight>(
    image: &Image<'static>,
    lag: i32,
    scores: &'static mut [W::Score],
    back: &'static mut [u8],
) -> Result<Decoder<'static, ChainView<'static, W>>, Status> {
    let view = image.chain::<W>()?;
    Ok(match usize::try_from(lag) {
        Ok(lag) => Decoder::lagged(view, lag, scores, back)?,
        Err(_) => view.decoder(scores, back)?,
    })
}

/// Makes a decoder in memory that `gibbsite_memory` has told the size of. With `lag` at least 0 the label of an item is known `lag`
/// items later; with `lag` -1 all labels are known at the end, of at most as many items as the image was made for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_start(
    decoder: *mut GibbsiteDecoder,
    model: *const GibbsiteModel,
    lag: i32,
    scores: *mut u32,
    scores_count: usize,
    back: *mut u8,
    back_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `image`, `write` and `put` ask for; `f32` and `i32` have the size and
    // alignment of `u32`, and zeros are values of both.
    status(unsafe {
        image(model).and_then(|image| {
            let back = write(back, back_count)?;
            let any = match image.scalar() {
                Scalar::F32 => Any::F32(make(image, lag, write(scores.cast(), scores_count)?, back)?),
                Scalar::I16 => Any::I16(make(image, lag, write(scores.cast(), scores_count)?, back)?),
                Scalar::I8 => Any::I8(make(image, lag, write(scores.cast(), scores_count)?, back)?),
            };
            put(decoder.cast(), Made { mark: DECODER, content: any })
        })
    })
}

/// # Safety
/// As `put`.
unsafe fn tell(label: Option<u8>, due: *mut bool, out: *mut u8) -> Result<(), Status> {
    // SAFETY: the caller's promises are those that `put` asks for.
    unsafe {
        put(due, label.is_some())?;
        label.map_or(Ok(()), |label| put(out, label))
    }
}

/// Takes the next item of an image with `f32` weights. `due` tells whether a label is known, which is then in `label`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_push(
    decoder: *mut GibbsiteDecoder,
    features: *const GibbsiteFeature,
    count: usize,
    due: *mut bool,
    label: *mut u8,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `decoder`, `read` and `put` ask for.
    status(unsafe {
        self::decoder(decoder).and_then(|any| {
            let Any::F32(decoder) = any else { return Err(Status::Scalar) };
            let features = read(features, count)?.iter().map(|f| (f.attribute, f.value));
            tell(decoder.push_of(features)?, due, label)
        })
    })
}

/// Takes the next item of an image in fixed point. `due` tells whether a label is known, which is then in `label`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_push_fixed(
    decoder: *mut GibbsiteDecoder,
    features: *const GibbsiteFeatureFixed,
    count: usize,
    due: *mut bool,
    label: *mut u8,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `decoder`, `read` and `put` ask for.
    status(unsafe {
        self::decoder(decoder).and_then(|any| {
            let features = read(features, count)?.iter().map(|f| (f.attribute, f.value));
            let given = match any {
                Any::F32(_) => return Err(Status::Scalar),
                Any::I16(decoder) => decoder.push_of(features)?,
                Any::I8(decoder) => decoder.push_of(features)?,
            };
            tell(given, due, label)
        })
    })
}

/// Writes the labels that are still to come to `labels`, how many to `count`, and begins another sequence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_finish(
    decoder: *mut GibbsiteDecoder,
    labels: *mut u8,
    room: usize,
    count: *mut usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about the pointers are those that `decoder`, `write` and `put` ask for.
    status(unsafe {
        self::decoder(decoder).and_then(|any| {
            let pending = match any {
                Any::F32(d) => d.pending(),
                Any::I16(d) => d.pending(),
                Any::I8(d) => d.pending(),
            };
            if pending > room {
                return Err(Status::Memory);
            }
            let labels = write(labels, pending)?;
            match any {
                Any::F32(d) => d.finish(labels).map(|_| d.reset()),
                Any::I16(d) => d.finish(labels).map(|_| d.reset()),
                Any::I8(d) => d.finish(labels).map(|_| d.reset()),
            }?;
            put(count, pending)
        })
    })
}

/// Nothing in `gibbsite-core` panics, and the linker finds that out; somebody must be there all the same.
#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {}
}
