//! Any bytes as a data cache, and caches with changed bytes whose checksums were made right again: refused, or a sane data
//! set, never a panic or more memory than the file is long.
#![no_main]

use arbitrary::{Result, Unstructured};
use gibbsite::data::cache::{Key, read_from, write_to};
use gibbsite::data::dataset::{self, Dataset, Format, ReadParams};
use gibbsite_fuzz::readers::sane;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::sync::LazyLock;

/// Where the header ends, and where its two checksums are.
const HEADER: usize = 112;
const CRC: usize = 16;

static KEY: LazyLock<Key> = LazyLock::new(|| {
    let file = std::env::current_exe().expect("a running program");
    Key::of::<f64>(&file, &ReadParams::default()).expect("a program is a file")
});

fn load(bytes: &[u8]) {
    match read_from::<f64>(bytes, bytes.len() as u64, &KEY) {
        Ok(data) => {
            let Dataset { matrix, target, names, .. } = &data;
            assert!(target.is_empty() || target.len() == matrix.rows());
            assert_eq!(names.len(), matrix.columns());
            for j in 0..matrix.columns() {
                let inside = |(i, v): (usize, f64)| i < matrix.rows() && v.is_finite();
                assert!(matrix.column(j).iter().all(inside));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check(bytes: &[u8]) -> Result<()> {
    load(bytes);
    let u = &mut Unstructured::new(bytes);
    let csv = u.arbitrary()?;
    let text =
        if csv { &b"a,b,y\n1,0,2\n0,0,3\n7,0,4\n0,5,0\n"[..] } else { b"1 1:1\n2\n3 2:4 3:1\n4 3:2\n" };
    let format = if csv { Format::Csv } else { Format::Svmlight };
    let params = ReadParams { format: Some(format), ..ReadParams::default() };
    let data: Dataset = dataset::read_from(text, &params).expect("a good file");
    let mut cache = Cursor::new(Vec::new());
    write_to(&mut cache, &KEY, &data).expect("memory");
    let mut cache = cache.into_inner();
    let back: Dataset = read_from(&cache[..], cache.len() as u64, &KEY).expect("what was written");
    assert_eq!(back, data);
    sane(&back);
    let edits = u.int_in_range(1..=6)?;
    for _ in 0..edits {
        let at = u.choose_index(cache.len())?;
        cache[at] = u.arbitrary()?;
    }
    if u.ratio(1, 4)? {
        let len = u.int_in_range(0..=cache.len())?;
        cache.truncate(len);
    }
    load(&cache);
    if cache.len() >= HEADER {
        let body = crc32fast::hash(&cache[HEADER..]);
        cache[CRC + 4..CRC + 8].copy_from_slice(&body.to_le_bytes());
        cache[CRC..CRC + 4].fill(0);
        let header = crc32fast::hash(&cache[..HEADER]);
        cache[CRC..CRC + 4].copy_from_slice(&header.to_le_bytes());
        load(&cache);
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let _ = check(bytes);
});
