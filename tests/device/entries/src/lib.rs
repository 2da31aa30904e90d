//! A C entry point for each engine and scalar, so that the linker can show what one engine, called with memory
//! about which nothing is known, brings into an image: its size, and whether any way leads to a panic.
#![no_std]
// Slices cross the border only inside a struct behind a pointer; nobody calls these functions from C.
#![allow(improper_ctypes_definitions)]

mod calls;

use cases::engines::{self, Answer, Call};
use cases::images::{self, Tagging};
use core::panic::PanicInfo;

fn word(answer: Answer) -> u32 {
    answer.map_or(u32::MAX, |done| (done.floats << 16 | done.labels) as u32)
}

macro_rules! entries {
    ($($model:ident $engine:ident $single:ident $double:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $single(call: &mut Call<'_, f32>) -> u32 {
            word(engines::$engine(call))
        }
        #[unsafe(no_mangle)]
        pub extern "C" fn $double(call: &mut Call<'_, f64>) -> u32 {
            word(engines::$engine(call))
        }
    )* };
}
cases::for_each_engine!(entries);

macro_rules! image_entries {
    ($($scalar:ident $name:ident $image:ident $case:ident $entry:ident;)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $entry(call: &mut Tagging<'_>) -> u32 {
            word(images::$case(call))
        }
    )* };
}
cases::for_each_image_case!(image_entries);

/// The control: this one panics, and a check that does not find it is no check.
#[unsafe(no_mangle)]
pub extern "C" fn control_panics(call: &mut Call<'_, f32>, at: usize) -> u32 {
    call.words[at]
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {}
}
