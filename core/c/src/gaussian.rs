//! Gaussian CRFs: means, and what is left when outputs are known.

use crate::{GAUSSIAN, GibbsiteModel, GibbsiteStatus, Made, Status, give, made, put, read, status, write};
use gibbsite_core::image::{GaussianImage, GaussianView, gaussian_floats};
use gibbsite_core::infer::gaussian::{Terms, deviations_len, given_len, mean_len};

/// Facts about a Gaussian CRF.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GibbsiteGaussianFacts {
    /// Inputs.
    pub inputs: u32,
    /// Outputs.
    pub outputs: u32,
    /// Floats of memory that `gibbsite_gaussian_mean` needs.
    pub memory: u32,
    /// Floats of memory that `gibbsite_gaussian_revise` needs.
    pub memory_revised: u32,
}

/// The next `len` floats of memory.
fn take<'m>(memory: &mut &'m mut [f32], len: usize) -> Result<&'m mut [f32], Status> {
    let (piece, rest) = core::mem::take(memory).split_at_mut_checked(len).ok_or(Status::Memory)?;
    *memory = rest;
    Ok(piece)
}

const _: () = assert!(size_of::<Made<GaussianImage<'static>>>() <= size_of::<GibbsiteModel>());

/// The parts of a model that `gibbsite_gaussian_open` made.
///
/// # Safety
/// As for `image` of `lib.rs`.
unsafe fn view(at: *const GibbsiteModel) -> Result<GaussianView<'static>, Status> {
    // SAFETY: the caller's promise; only `gibbsite_gaussian_open` writes this mark.
    unsafe { made::<GaussianImage<'static>>(at, GAUSSIAN) }.map(GaussianImage::view)
}

/// Checks an image of `count` words that holds a Gaussian CRF and makes a model of it, for the functions below. The words are used where they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_gaussian_open(
    model: *mut GibbsiteModel,
    words: *const u32,
    count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about `words` and `model` are those that `read` and `put` ask for.
    status(unsafe {
        read(words, count).and_then(|words| Ok(GaussianImage::open(words)?)).and_then(|image| {
            put(model.cast::<Made<GaussianImage<'static>>>(), Made { mark: GAUSSIAN, content: image })
        })
    })
}

/// Tells how many inputs and outputs a Gaussian CRF has, and how much memory its functions need.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_gaussian_facts_of(
    model: *const GibbsiteModel,
    facts: *mut GibbsiteGaussianFacts,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises about `model` and `facts` are those that `image` and `put` ask for.
    status(unsafe {
        view(model).and_then(|view| {
            let [memory, revised] = gaussian_floats(view.outputs(), view.entries());
            let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let facts_found = GibbsiteGaussianFacts {
                inputs: small(view.inputs()),
                outputs: small(view.outputs()),
                memory: small(memory),
                memory_revised: small(revised),
            };
            put(facts, facts_found)
        })
    })
}

/// The mean of each output for `inputs` inputs at `x`, and if `deviations` is not null their standard deviations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_gaussian_mean(
    model: *const GibbsiteModel,
    x: *const f32,
    inputs: usize,
    mean: *mut f32,
    deviations: *mut f32,
    memory: *mut f32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        view(model).and_then(|view| {
            let device = view.model();
            let p = device.terms().outputs();
            let mut memory = write(memory, memory_count)?;
            let (found, work) = (take(&mut memory, p)?, take(&mut memory, mean_len(p))?);
            device.mean(read(x, inputs)?, found, work)?;
            give(mean, found)?;
            if !deviations.is_null() {
                device.deviations(found)?;
                give(deviations, found)?;
            }
            Ok(())
        })
    })
}

/// As `gibbsite_gaussian_mean`, when the outputs with `known` (one for each output) have the values in `y`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gibbsite_gaussian_revise(
    model: *const GibbsiteModel,
    x: *const f32,
    inputs: usize,
    known: *const bool,
    y: *const f32,
    mean: *mut f32,
    deviations: *mut f32,
    memory: *mut f32,
    memory_count: usize,
) -> GibbsiteStatus {
    // SAFETY: the caller's promises are those that the functions called here ask for.
    status(unsafe {
        view(model).and_then(|view| {
            let device = view.model();
            let (p, entries) = (device.terms().outputs(), device.terms().entries());
            let mut memory = write(memory, memory_count)?;
            let (found, spread) = (take(&mut memory, p)?, take(&mut memory, p)?);
            let (work, kept) = (take(&mut memory, mean_len(p))?, take(&mut memory, given_len(p, entries))?);
            device.mean(read(x, inputs)?, found, work)?;
            let given = device.given(read(known, p)?, kept)?;
            given.revise(read(y, p)?, found, work)?;
            given.deviations(spread, take(&mut memory, deviations_len(p, entries))?)?;
            give(mean, found)?;
            if deviations.is_null() { Ok(()) } else { give(deviations, spread) }
        })
    })
}
