//! A Cortex-M on Arm's MPS2 board.

use core::ptr::{read_volatile, write_volatile};
use cortex_m_semihosting::{debug, hio};

/// CMSDK timer 0: counts down at 25 MHz. Offsets: CTRL 0, VALUE 4, RELOAD 8.
const TIMER: *mut u32 = 0x4000_0000 as *mut u32;
/// With `-icount shift=10` an instruction takes 1024 ns: 25.6 ticks.
const TICKS_PER_10_INSTRUCTIONS: u64 = 256;

/// Starts the timer.
pub fn begin() {
    // SAFETY: the address is the board's timer, which nobody else uses; CTRL's bit 0 starts it.
    unsafe {
        write_volatile(TIMER.add(2), u32::MAX);
        write_volatile(TIMER.add(1), u32::MAX);
        write_volatile(TIMER, 1);
    }
}

/// What the timer shows.
pub fn now() -> u32 {
    // SAFETY: as in `begin`.
    unsafe { read_volatile(TIMER.add(1)) }
}

/// Instructions between two readings of the timer.
pub fn instructions(from: u32, to: u32) -> u64 {
    u64::from(from.wrapping_sub(to)) * 10 / TICKS_PER_10_INSTRUCTIONS
}

/// The stack pointer.
pub fn stack() -> usize {
    cortex_m::register::msp::read() as usize
}

/// Writes to standard output.
pub fn write(bytes: &[u8]) {
    if let Ok(mut out) = hio::hstdout() {
        let _ = out.write_all(bytes);
    }
}

/// Ends the run.
pub fn finish(well: bool) -> ! {
    debug::exit(if well { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {}
}
