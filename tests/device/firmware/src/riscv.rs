//! A RISC-V core on QEMU's machine `virt`.

use core::arch::asm;

/// The core counts by itself.
pub fn begin() {}

/// Instructions that have been executed (the lower half; QEMU's `-icount shift=0` makes it repeatable).
pub fn now() -> u32 {
    let count: u32;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {}, minstret", out(reg) count) };
    count
}

/// Instructions between two readings.
pub fn instructions(from: u32, to: u32) -> u64 {
    u64::from(to.wrapping_sub(from))
}

/// The stack pointer.
pub fn stack() -> usize {
    let at: usize;
    // SAFETY: copies a register.
    unsafe { asm!("mv {}, sp", out(reg) at) };
    at
}

/// A call of the machine around us: RISC-V's mark of semihosting, three instructions of full length.
fn semihosting(operation: usize, argument: usize) -> usize {
    let result: usize;
    // SAFETY: the debugger reads what `argument` leads to, and writes `a0`.
    unsafe {
        asm!(
            ".option push", ".option norvc", ".balign 16",
            "slli x0, x0, 0x1f", "ebreak", "srai x0, x0, 7",
            ".option pop",
            inlateout("a0") operation => result, in("a1") argument
        )
    };
    result
}

/// Writes to standard output: SYS_OPEN of `:tt` for writing, SYS_WRITE.
pub fn write(bytes: &[u8]) {
    let name = b":tt\0";
    let open = [name.as_ptr() as usize, 4, 3];
    let file = semihosting(0x01, open.as_ptr() as usize);
    let all = [file, bytes.as_ptr() as usize, bytes.len()];
    semihosting(0x05, all.as_ptr() as usize);
}

/// Ends the run: SYS_EXIT with ADP_Stopped_ApplicationExit or ADP_Stopped_InternalError.
pub fn finish(well: bool) -> ! {
    semihosting(0x18, if well { 0x2_0026 } else { 0x2_0024 });
    loop {}
}
