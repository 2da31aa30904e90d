//! The cases on a Cortex-M4, with what each costs.
#![no_std]
#![no_main]

use cases::{ImageMemory, Memory, run, run_images};
use core::ptr::addr_of_mut;
use gibbsite_device_firmware::{Device, finish};

static mut SINGLE: Memory<f32> = Memory::new(0.0);
static mut DOUBLE: Memory<f64> = Memory::new(0.0);
static mut IMAGES: ImageMemory = ImageMemory::new();

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    let mut device = Device::new();
    // SAFETY: `main` runs once, no interrupt is enabled, and nothing else names the three.
    let (single, double, images) =
        unsafe { (&mut *addr_of_mut!(SINGLE), &mut *addr_of_mut!(DOUBLE), &mut *addr_of_mut!(IMAGES)) };
    let failures = run(single, &mut device) + run(double, &mut device) + run_images(images, &mut device);
    finish(failures == 0)
}
