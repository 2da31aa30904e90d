//! Any bytes as a table of numbers, CSV or `.npy`: an error or a table whose cells are finite or missing, never a panic.
#![no_main]

use gibbsite::data::{npy, numbers::Numbers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = Numbers::read(bytes) else { return };
    let (rows, cols) = (table.values.rows(), table.values.cols());
    assert!(rows > 0 && cols > 0 && table.values.values().iter().all(|v| !v.is_infinite()));
    assert_eq!(table.missing().is_some(), table.values.values().iter().any(|v| v.is_nan()));
    // Written as an array, the same numbers come back.
    let values: Vec<f64> =
        (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))).map(|(i, j)| table.values.get(i, j)).collect();
    let again = npy::read(&npy::write(rows, cols, &values)).unwrap();
    assert!((again.rows, again.cols) == (rows, cols));
    assert!(again.values.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()));
});
