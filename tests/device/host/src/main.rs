//! The cases on the desk.
use cases::{ImageMemory, Memory, Report, run, run_images};

struct Lines(String);

impl Report for Lines {
    fn text(&mut self, part: &str) {
        self.0.push_str(part);
    }
}

fn main() {
    let mut lines = Lines(String::new());
    let (mut single, mut double) = (Box::new(Memory::new(0.0f32)), Box::new(Memory::new(0.0f64)));
    let mut failures = run(&mut *single, &mut lines) + run(&mut *double, &mut lines);
    failures += run_images(&mut ImageMemory::new(), &mut lines);
    print!("{}", lines.0);
    std::process::exit(i32::from(failures != 0));
}
