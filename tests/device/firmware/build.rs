//! Puts `memory.x` of the target where the linker looks.
use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let riscv = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "riscv32");
    let memory = if riscv { "virt.x" } else { "mps2.x" };
    fs::copy(memory, out.join("memory.x"))?;
    println!("cargo:rustc-link-search={}", out.display());
    if riscv {
        println!("cargo:rustc-link-arg-bins=-Tmemory.x");
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rerun-if-changed={memory}");
    Ok(())
}
