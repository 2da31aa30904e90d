//! Any bytes as a CSV file: an error or a data set, never a panic, and the same for chunks and threads of any kind.
#![no_main]

use gibbsite::data::dataset::Format;
use gibbsite_fuzz::readers::check;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check(Format::Csv, bytes));
