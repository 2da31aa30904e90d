//! What all firmwares share: lines through semihosting, and what a case costs: instructions (QEMU's `-icount`) and the deepest the
//! stack went. [`board`] is what differs between machines.
#![no_std]

#[cfg(target_arch = "arm")]
#[path = "cortex.rs"]
pub mod board;
#[cfg(target_arch = "riscv32")]
#[path = "riscv.rs"]
pub mod board;

pub use board::finish;
use cases::Report;
use core::panic::PanicInfo;
use core::ptr::{read_volatile, write_volatile};

/// How much of the stack is painted before a case.
const PAINTED: usize = 32 * 1024;
const PAINT: u32 = 0xA5A5_5A5A;

/// The device.
pub struct Device {
    line: [u8; 256],
    used: usize,
    started: u32,
    stack: usize,
}

impl Report for Device {
    fn text(&mut self, part: &str) {
        for &byte in part.as_bytes() {
            if self.used == self.line.len() {
                self.flush();
            }
            self.line[self.used] = byte;
            self.used += 1;
            if byte == b'\n' {
                self.flush();
            }
        }
    }

    #[inline(never)]
    fn start(&mut self) {
        self.stack = paint();
        self.started = board::now();
    }

    #[inline(never)]
    fn stop(&mut self) -> Option<(u64, usize)> {
        let now = board::now();
        Some((board::instructions(self.started, now), deepest(self.stack)))
    }
}

impl Default for Device {
    fn default() -> Self {
        Self::new()
    }
}

impl Device {
    /// Starts to count.
    pub fn new() -> Self {
        board::begin();
        Self { line: [0; 256], used: 0, started: 0, stack: 0 }
    }

    fn flush(&mut self) {
        board::write(&self.line[..self.used]);
        self.used = 0;
    }
}

/// Paints the stack below the caller and returns where that begins.
#[inline(never)]
fn paint() -> usize {
    let top = (board::stack() - 64) & !3;
    for i in 1..=PAINTED / 4 {
        // SAFETY: below the stack pointer (the stack has megabytes) and above all statics; this loop
        // itself makes no call that would use it.
        unsafe { write_volatile((top - 4 * i) as *mut u32, PAINT) };
    }
    top
}

/// How far below `top` the paint was touched.
#[inline(never)]
fn deepest(top: usize) -> usize {
    let mut low = top - PAINTED;
    // SAFETY: as in `paint`.
    while low < top && unsafe { read_volatile(low as *const u32) } == PAINT {
        low += 4;
    }
    top - low
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    board::write(b"panicked\n");
    finish(false)
}
