//! `core/c/gibbsite.h` is what cbindgen makes of the library's source.

use std::path::Path;
use std::{env, fs};

/// A header that is out of date is written anew by `GIBBSITE_WRITE_HEADER=1 cargo test -p gibbsite-tests --test c_header`.
#[test]
fn the_header_is_the_one_of_the_source() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/c");
    let config = cbindgen::Config::from_file(library.join("cbindgen.toml")).unwrap();
    let made =
        cbindgen::Builder::new().with_config(config).with_src(library.join("src/lib.rs")).generate().unwrap();
    let mut text = Vec::new();
    made.write(&mut text);
    let (text, at) = (String::from_utf8(text).unwrap(), library.join("gibbsite.h"));
    if env::var_os("GIBBSITE_WRITE_HEADER").is_some() {
        fs::write(&at, &text).unwrap();
    }
    let kept = fs::read_to_string(&at).unwrap();
    assert!(kept == text, "core/c/gibbsite.h is not what cbindgen makes of core/c/src/lib.rs:\n{text}");
    // What C programs lean on, by name: a generator that finds nothing would otherwise agree with an empty header.
    for name in [
        "gibbsite_open(",
        "gibbsite_start(",
        "gibbsite_push_fixed(",
        "gibbsite_gaussian_mean(",
        "gibbsite_marginals_fixed(",
        "gibbsite_filter_push(",
        "gibbsite_n_best(",
        "gibbsite_overlay_learn(",
        "GIBBSITE_STATUS_IMPOSSIBLE = 11",
    ] {
        assert!(kept.contains(name), "{name} is missing");
    }
}
