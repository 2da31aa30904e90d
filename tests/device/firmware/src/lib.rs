//! What both firmwares share: lines through semihosting, and what a case costs: instructions (QEMU's `-icount`, read from a timer
//! of the board) and the deepest the stack went.
#![no_std]

use cases::Report;
use core::panic::PanicInfo;
use core::ptr::{read_volatile, write_volatile};
use cortex_m_semihosting::{debug, hio};

/// CMSDK timer 0: counts down at 25 MHz. Offsets: CTRL 0, VALUE 4, RELOAD 8.
const TIMER: *mut u32 = 0x4000_0000 as *mut u32;
/// With `-icount shift=10` an instruction takes 1024 ns: 25.6 ticks.
const TICKS_PER_10_INSTRUCTIONS: u64 = 256;
/// How much of the stack is painted before a case.
const PAINTED: usize = 32 * 1024;
const PAINT: u32 = 0xA5A5_5A5A;

/// The device.
pub struct Device {
    out: hio::HostStream,
    line: [u8; 256],
    used: usize,
    ticks: u32,
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
        // SAFETY: the address is the board's timer, which nobody else uses.
        self.ticks = unsafe { read_volatile(TIMER.add(1)) };
    }

    #[inline(never)]
    fn stop(&mut self) -> Option<(u64, usize)> {
        // SAFETY: as in `start`.
        let now = unsafe { read_volatile(TIMER.add(1)) };
        let ticks = u64::from(self.ticks.wrapping_sub(now));
        Some((ticks * 10 / TICKS_PER_10_INSTRUCTIONS, deepest(self.stack)))
    }
}

impl Device {
    /// Starts the timer.
    pub fn new() -> Option<Self> {
        // SAFETY: the timer is ours; CTRL's bit 0 starts it.
        unsafe {
            write_volatile(TIMER.add(2), u32::MAX);
            write_volatile(TIMER.add(1), u32::MAX);
            write_volatile(TIMER, 1);
        }
        let out = hio::hstdout().ok()?;
        Some(Self { out, line: [0; 256], used: 0, ticks: 0, stack: 0 })
    }

    fn flush(&mut self) {
        let _ = self.out.write_all(&self.line[..self.used]);
        self.used = 0;
    }
}

/// Paints the stack below the caller and returns where that begins.
#[inline(never)]
fn paint() -> usize {
    let top = (cortex_m::register::msp::read() as usize - 64) & !3;
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

/// Ends the run.
pub fn finish(well: bool) -> ! {
    debug::exit(if well { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {}
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    if let Ok(mut out) = hio::hstdout() {
        let _ = out.write_all(b"panicked\n");
    }
    finish(false)
}
