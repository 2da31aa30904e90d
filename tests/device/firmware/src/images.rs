//! The cases with images alone: what a device without floating point would have.
#![no_std]
#![no_main]

use cases::{ImageMemory, run_images};
use core::ptr::addr_of_mut;
use gibbsite_device_firmware::{Device, finish};

static mut IMAGES: ImageMemory = ImageMemory::new();

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let mut device = Device::new();
    // SAFETY: `main` runs once, no interrupt is enabled, and nothing else names it.
    let failures = run_images(unsafe { &mut *addr_of_mut!(IMAGES) }, &mut device);
    finish(failures == 0)
}
